#ifndef COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_DEVICE_FUNCTIONS_H_
#define COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_DEVICE_FUNCTIONS_H_

#include "common/compute/kernels/cuda/device_code/device_elements.h"
#include "common/core/device/device_language.h"

// Functions of device code, for .cu files only.

// MUSTER_UNROLL precedes a loop over an array of a thread: if the loop is
// unrolled, the array stays in registers. MUSTER_KEEP_LOOP prevents unrolling,
// to limit the code size.
#ifdef __CUDACC__
#define MUSTER_UNROLL _Pragma("unroll")
#define MUSTER_KEEP_LOOP _Pragma("unroll 1")
#else
#define MUSTER_UNROLL
#define MUSTER_KEEP_LOOP
#endif

namespace muster::internal {

// Marks an address that a kernel has loaded from memory as one of global
// memory. For addresses in a kernel's parameter, compilers infer it.
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

// Records a data error. Only the first thread that calls it writes the record.
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

// Returns the index of this thread among the threads of all blocks along x.
__device__ int64_t GlobalThread() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_DEVICE_FUNCTIONS_H_
