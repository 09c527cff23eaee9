// Kernels for the tests of devices.

#include "common/core/device/device_language.h"

extern "C" __global__ void scale_add(const float* x, float* y, float factor,
                                     int count) {
  AwaitPrecedingKernel();
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) y[i] += factor * x[i];
}

// Deadlocks: half of the threads wait for the others, which reach no barrier.
extern "C" __global__ void deadlock() {
  AwaitPrecedingKernel();
  if (threadIdx.x % 2 == 0) __syncthreads();
}

MUSTER_SIMULATED_KERNELS(device_test_kernels, MUSTER_PLAIN_KERNEL(scale_add),
                         MUSTER_BARRIER_KERNEL(deadlock))
