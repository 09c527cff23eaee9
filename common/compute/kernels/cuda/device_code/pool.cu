// Pooling and its gradients.

#include "common/compute/kernels/cuda/device_code/device_functions.h"
#include "common/compute/kernels/cuda/device_code/kernel_parameters.h"
#include "common/core/device/device_language.h"

namespace muster::internal {
namespace {

// The part of a window within the image.
struct Range {
  int64_t begin;
  int64_t end;
};

__device__ Range RangeOf(const DeviceWindow& axis, int64_t i) {
  const int64_t first = i * axis.stride - axis.padding_before;
  const int64_t last = first + axis.window_extent;
  return {first > 0 ? first : 0,
          last < axis.input_extent ? last : axis.input_extent};
}

// The windows that contain the input `at`.
__device__ Range WindowsOf(const DeviceWindow& axis, int64_t at) {
  const int64_t padded = at + axis.padding_before;
  const int64_t before = padded - axis.window_extent;  // Ends before `at`.
  const int64_t end = padded / axis.stride + 1;
  return {before < 0 ? 0 : before / axis.stride + 1,
          end < axis.output_extent ? end : axis.output_extent};
}

__device__ int64_t XIndex(const PoolParameters& p, int64_t n, int64_t h,
                          int64_t w, int64_t c) {
  return ((n * p.height.input_extent + h) * p.width.input_extent + w) *
             p.channels +
         c;
}

// Returns the position of the first maximum of a window; of the first NaN if
// there is one.
__device__ int64_t PositionOfMax(const PoolParameters& p, int64_t n,
                                 const Range& rows, const Range& columns,
                                 int64_t c) {
  int64_t chosen = XIndex(p, n, rows.begin, columns.begin, c);
  double max = LoadElement<double>(p.x, chosen);
  for (int64_t h = rows.begin; h < rows.end; ++h) {
    for (int64_t w = columns.begin; w < columns.end; ++w) {
      if (IsNanNumber(max)) return chosen;
      const int64_t at = XIndex(p, n, h, w, c);
      const double x = LoadElement<double>(p.x, at);
      if (!(x <= max)) {
        max = x;
        chosen = at;
      }
    }
  }
  return chosen;
}

__device__ double MeanOf(const PoolParameters& p, int64_t n, const Range& rows,
                         const Range& columns, int64_t c) {
  double sum = 0;
  for (int64_t h = rows.begin; h < rows.end; ++h) {
    for (int64_t w = columns.begin; w < columns.end; ++w) {
      sum += LoadElement<double>(p.x, XIndex(p, n, h, w, c));
    }
  }
  return sum / static_cast<double>((rows.end - rows.begin) *
                                   (columns.end - columns.begin));
}

}  // namespace
}  // namespace muster::internal

using namespace muster::internal;  // NOLINT

extern "C" __global__ void pool_forward(
    const __grid_constant__ PoolParameters p) {
  AwaitPrecedingKernel();
  const int64_t thread = GlobalThread();
  if (thread >= p.count) return;
  const int64_t c = thread % p.channels;
  int64_t rest = thread / p.channels;
  const Range columns = RangeOf(p.width, rest % p.width.output_extent);
  rest /= p.width.output_extent;
  const Range rows = RangeOf(p.height, rest % p.height.output_extent);
  const int64_t n = rest / p.height.output_extent;
  StoreElement(p.to, thread,
               p.pooling == PoolKind::kAverage
                   ? MeanOf(p, n, rows, columns, c)
                   : LoadElement<double>(
                         p.values, PositionOfMax(p, n, rows, columns, c)));
}

extern "C" __global__ void pool_gradient(
    const __grid_constant__ PoolParameters p) {
  AwaitPrecedingKernel();
  const int64_t thread = GlobalThread();
  if (thread >= p.count) return;
  const int64_t c = thread % p.channels;
  int64_t rest = thread / p.channels;
  const Range over = WindowsOf(p.width, rest % p.width.input_extent);
  rest /= p.width.input_extent;
  const Range down = WindowsOf(p.height, rest % p.height.input_extent);
  const int64_t n = rest / p.height.input_extent;
  double sum = 0;
  for (int64_t oh = down.begin; oh < down.end; ++oh) {
    for (int64_t ow = over.begin; ow < over.end; ++ow) {
      const Range rows = RangeOf(p.height, oh);
      const Range columns = RangeOf(p.width, ow);
      const double gradient = LoadElement<double>(
          p.values, ((n * p.height.output_extent + oh) * p.width.output_extent +
                     ow) * p.channels +
                        c);
      if (p.pooling == PoolKind::kAverage) {
        sum += gradient / static_cast<double>((rows.end - rows.begin) *
                                              (columns.end - columns.begin));
      } else if (PositionOfMax(p, n, rows, columns, c) == thread) {
        sum += gradient;
      }
    }
  }
  StoreElement(p.to, thread, sum);
}

MUSTER_SIMULATED_KERNELS(pool, MUSTER_PLAIN_KERNEL(pool_forward),
                         MUSTER_PLAIN_KERNEL(pool_gradient))
