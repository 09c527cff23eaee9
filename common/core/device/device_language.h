#ifndef COMMON_CORE_DEVICE_DEVICE_LANGUAGE_H_
#define COMMON_CORE_DEVICE_DEVICE_LANGUAGE_H_

#include "common/core/base/host_device.h"

// The first include of a .cu file. nvcc provides the language of device
// kernels; for other compilers, the simulated GPU declares the part of it that
// kernels may use.
//
// A .cu file holds kernels declared `extern "C" __global__ void`, no host code
// and no standard C++ header. The first statement of a kernel is
// AwaitPrecedingKernel(); the build checks it. The file ends with the list of
// its kernels:
//
//   MUSTER_SIMULATED_KERNELS(NAME, MUSTER_PLAIN_KERNEL(scale),
//                            MUSTER_BARRIER_KERNEL(row_sum))
//
// where NAME is that of its device_kernels() rule. A barrier kernel uses
// __syncthreads, shuffles or votes; a plain kernel does not.
#ifdef __CUDACC__

#define MUSTER_SIMULATED_KERNELS(...)

// Returns when the previous kernel in the stream is done and its writes are
// visible. The blocks of a kernel may be launched before that, so that
// launching takes no time between two short kernels: "programmatic dependent
// launch" in the CUDA C++ Programming Guide. A kernel that did not wait could
// end before the previous one, and the next kernel would begin too early.
__device__ inline void AwaitPrecedingKernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Returns the block's memory that LaunchShape::shared_bytes requests.
__device__ inline void* DynamicSharedMemory() {
  extern __shared__ unsigned long long dynamic_shared_memory[];
  return dynamic_shared_memory;
}

#else
#include "common/core/device/simulated/simulated_language.h"
#endif

#endif  // COMMON_CORE_DEVICE_DEVICE_LANGUAGE_H_
