#ifndef COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_DEVICE_FUNCTIONS_H_
#define COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_DEVICE_FUNCTIONS_H_

#include "common/compute/kernels/cuda/device_code/device_elements.h"
#include "common/core/device/device_language.h"

// Functions of device code, for .cu files only.

// Before a loop over an array of a thread: unrolled, the array lies in
// registers. MUSTER_KEEP_LOOP: never unrolled, for the size of the code.
#ifdef __CUDACC__
#define MUSTER_UNROLL _Pragma("unroll")
#define MUSTER_KEEP_LOOP _Pragma("unroll 1")
#else
#define MUSTER_UNROLL
#define MUSTER_KEEP_LOOP
#endif

namespace muster::internal {

// Returns an address that a kernel found in memory, as one of global memory:
// those of its parameter are known to be.
template <typename T>
__device__ T* InGlobalMemory(T* address) {
#ifdef __CUDACC__
  __builtin_assume(__isGlobal(address));
#endif
  return address;
}

__device__ void CloseGate(DeviceGate* gate) {
  gate->is_closed = 1;
  atomicCAS(gate->closed_by, 0, gate->step);
}

// Records a data error. Only the first thread of all that calls it writes.
__device__ void ReportFault(FaultRecord* fault, FaultCode code, int64_t element,
                            int64_t value, int64_t bound) {
  if (fault->gate != nullptr && fault->gate->is_closed != 0) return;
  if (atomicCAS(&fault->code, static_cast<int32_t>(FaultCode::kNone),
                static_cast<int32_t>(code)) == 0) {
    fault->element = element;
    fault->value = value;
    fault->bound = bound;
    if (fault->gate != nullptr) CloseGate(fault->gate);
  }
}

// The number of this thread among those of all blocks along x.
__device__ int64_t GlobalThread() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_DEVICE_FUNCTIONS_H_
