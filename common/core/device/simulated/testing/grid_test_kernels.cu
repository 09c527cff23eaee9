// Kernels for the simulated grid's test: they use all of its language, and some
// use it wrongly.

#include "common/core/device/device_language.h"

extern "C" __global__ void write_coordinates(uint64_t* seen) {
  AwaitPrecedingKernel();
  const uint64_t block =
      blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const uint64_t thread =
      threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const uint64_t at = block * blockDim.x * blockDim.y * blockDim.z + thread;
  seen[at] += at + 1;
}

extern "C" __global__ void sum_rows(const float* x, float* sums, int columns) {
  AwaitPrecedingKernel();
  __shared__ float partial[32];
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    sum += x[blockIdx.x * columns + i];
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  }
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    float total = 0;
    for (uint32_t i = 0; i < blockDim.x / 32; ++i) total += partial[i];
    sums[blockIdx.x] = total;
  }
}

extern "C" __global__ void shuffle_lanes(double* out) {
  AwaitPrecedingKernel();
  const int lane = threadIdx.x;
  const double own = lane;
  out[lane] = __shfl_xor_sync(~0u, own, 5);
  out[32 + lane] = __shfl_down_sync(~0u, own, 3);
  out[64 + lane] = __shfl_up_sync(~0u, own, 3);
  out[96 + lane] = __shfl_sync(~0u, own, 9);
}

extern "C" __global__ void vote_odd(uint32_t* ballot) {
  AwaitPrecedingKernel();
  const uint32_t votes = __ballot_sync(~0u, threadIdx.x % 2 == 1);
  __syncwarp();
  if (threadIdx.x == 0) *ballot = votes;
}

extern "C" __global__ void reverse(int32_t* x) {
  AwaitPrecedingKernel();
  int32_t* const held = static_cast<int32_t*>(DynamicSharedMemory());
  held[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = held[blockDim.x - 1 - threadIdx.x];
}

extern "C" __global__ void claim(int32_t* first, unsigned long long* count) {
  AwaitPrecedingKernel();
  const int32_t self = blockIdx.x * blockDim.x + threadIdx.x;
  atomicCAS(first, -1, self);
  atomicAdd(count, 1ull);
}

// Lacks the barrier between write and read.
extern "C" __global__ void race(int32_t* out) {
  AwaitPrecedingKernel();
  __shared__ int32_t values[64];
  values[threadIdx.x] = -1;
  __syncthreads();
  values[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = threadIdx.x == 0 ? 0 : values[threadIdx.x - 1];
}

extern "C" __global__ void some_wait(int count) {
  AwaitPrecedingKernel();
  if (static_cast<int>(threadIdx.x) < count) __syncthreads();
}

extern "C" __global__ void shuffle_without_partner(int offset) {
  AwaitPrecedingKernel();
  if (threadIdx.x == 0) {
    __shfl_xor_sync(~0u, offset, 1);
  } else {
    __syncthreads();
  }
}

extern "C" __global__ void two_barriers(int odd) {
  AwaitPrecedingKernel();
  if (static_cast<int>(threadIdx.x) % 2 == odd) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

extern "C" __global__ void plain_that_waits(int) {
  AwaitPrecedingKernel();
  __syncthreads();
}

MUSTER_SIMULATED_KERNELS(
    grid_test_kernels, MUSTER_PLAIN_KERNEL(write_coordinates),
    MUSTER_BARRIER_KERNEL(sum_rows), MUSTER_BARRIER_KERNEL(shuffle_lanes),
    MUSTER_BARRIER_KERNEL(vote_odd), MUSTER_BARRIER_KERNEL(reverse),
    MUSTER_PLAIN_KERNEL(claim), MUSTER_BARRIER_KERNEL(race),
    MUSTER_BARRIER_KERNEL(some_wait),
    MUSTER_BARRIER_KERNEL(shuffle_without_partner),
    MUSTER_BARRIER_KERNEL(two_barriers), MUSTER_PLAIN_KERNEL(plain_that_waits))
