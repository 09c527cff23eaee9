// Batch normalization of rows of channels. A kernel over channels computes what
// each channel needs, and a kernel over elements applies it.

#include "common/compute/kernels/cuda/device_functions.h"
#include "common/compute/kernels/cuda/kernel_parameters.h"
#include "common/core/device/device_language.h"

namespace muster::internal {
namespace {

constexpr int kBlockChannels = BatchNormParameters::kBlockChannels;
constexpr int kLanes = BatchNormParameters::kLanes;

// Returns the sum of the values of a channel's lanes, in their order.
__device__ double SumLanes(double value) {
  __shared__ double partial[kLanes][kBlockChannels];
  __syncthreads();  // An earlier sum may still be read.
  partial[threadIdx.y][threadIdx.x] = value;
  __syncthreads();
  double sum = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    sum += partial[lane][threadIdx.x];
  }
  return sum;
}

__device__ int64_t Channel() {
  return static_cast<int64_t>(blockIdx.x) * kBlockChannels + threadIdx.x;
}

}  // namespace
}  // namespace muster::internal

using namespace muster::internal;  // NOLINT

// Writes mean and variance, and the center and the factor of each channel.
extern "C" __global__ void batch_norm_moments(
    const __grid_constant__ BatchNormParameters p) {
  const int64_t c = Channel();
  const bool is_channel = c < p.channels;
  const double count = static_cast<double>(p.rows);
  double sum = 0;
  for (int64_t r = threadIdx.y; r < p.rows && is_channel; r += kLanes) {
    sum += LoadElement<double>(p.x, r * p.channels + c);
  }
  const double center = SumLanes(sum) / count;
  double squares = 0;
  for (int64_t r = threadIdx.y; r < p.rows && is_channel; r += kLanes) {
    const double distance =
        LoadElement<double>(p.x, r * p.channels + c) - center;
    squares += distance * distance;
  }
  const double variance = SumLanes(squares) / count;
  if (!is_channel || threadIdx.y != 0) return;
  StoreElement(p.mean, c, center);
  StoreElement(p.variance, c, variance);
  p.channel_values[2 * c] = center;
  p.channel_values[2 * c + 1] =
      LoadElement<double>(p.scale, c) / sqrt(variance + p.epsilon);
}

// Writes the center and the factor of each channel from given moments.
extern "C" __global__ void batch_norm_given(
    const __grid_constant__ BatchNormParameters p) {
  const int64_t c = GlobalThread();
  if (c >= p.channels) return;
  p.channel_values[2 * c] = LoadElement<double>(p.mean, c);
  p.channel_values[2 * c + 1] =
      LoadElement<double>(p.scale, c) /
      sqrt(LoadElement<double>(p.variance, c) + p.epsilon);
}

extern "C" __global__ void batch_norm_apply(
    const __grid_constant__ BatchNormParameters p) {
  const int64_t i = GlobalThread();
  if (i >= p.rows * p.channels) return;
  const int64_t c = i % p.channels;
  const double distance = LoadElement<double>(p.x, i) - p.channel_values[2 * c];
  StoreElement(p.to, i,
               distance * p.channel_values[2 * c + 1] +
                   LoadElement<double>(p.offset, c));
}

// Writes the gradients of scale and offset, and both for each channel.
extern "C" __global__ void batch_norm_sums(
    const __grid_constant__ BatchNormParameters p) {
  const int64_t c = Channel();
  const bool is_channel = c < p.channels;
  double mean = 0;
  double inverse = 0;
  if (is_channel) {
    mean = LoadElement<double>(p.mean, c);
    inverse = 1 / sqrt(LoadElement<double>(p.variance, c) + p.epsilon);
  }
  double sum = 0;
  double weighted_sum = 0;
  for (int64_t r = threadIdx.y; r < p.rows && is_channel; r += kLanes) {
    const int64_t at = r * p.channels + c;
    const double gradient = LoadElement<double>(p.gradient, at);
    sum += gradient;
    weighted_sum += gradient * (LoadElement<double>(p.x, at) - mean) * inverse;
  }
  sum = SumLanes(sum);
  weighted_sum = SumLanes(weighted_sum);
  if (!is_channel || threadIdx.y != 0) return;
  StoreElement(p.scale_gradient, c, weighted_sum);
  StoreElement(p.offset_gradient, c, sum);
  p.channel_values[2 * c] = sum;
  p.channel_values[2 * c + 1] = weighted_sum;
}

extern "C" __global__ void batch_norm_gradient(
    const __grid_constant__ BatchNormParameters p) {
  const int64_t i = GlobalThread();
  if (i >= p.rows * p.channels) return;
  const int64_t c = i % p.channels;
  const double inverse =
      1 / sqrt(LoadElement<double>(p.variance, c) + p.epsilon);
  const double normalized =
      (LoadElement<double>(p.x, i) - LoadElement<double>(p.mean, c)) * inverse;
  const double along =
      (p.channel_values[2 * c] + normalized * p.channel_values[2 * c + 1]) /
      static_cast<double>(p.rows);
  StoreElement(p.to, i,
               (LoadElement<double>(p.gradient, i) - along) *
                   (LoadElement<double>(p.scale, c) * inverse));
}

MUSTER_SIMULATED_KERNELS(batch_norm, MUSTER_BARRIER_KERNEL(batch_norm_moments),
                         MUSTER_PLAIN_KERNEL(batch_norm_given),
                         MUSTER_PLAIN_KERNEL(batch_norm_apply),
                         MUSTER_BARRIER_KERNEL(batch_norm_sums),
                         MUSTER_PLAIN_KERNEL(batch_norm_gradient))
