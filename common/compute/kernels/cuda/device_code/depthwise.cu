// Depthwise convolutions with one output for each channel, and their gradients.
// They compute little with each loaded element, so memory bandwidth limits
// them.

#include "common/compute/kernels/cuda/device_code/depthwise_parameters.h"
#include "common/compute/kernels/cuda/device_code/depthwise_pixels.h"
#include "common/compute/kernels/cuda/device_code/device_functions.h"
#include "common/core/device/device_language.h"

namespace muster::internal {
namespace {

using Parameters = DepthwiseParameters;

// The strip of a result image that a thread computes. Each image has `extent`
// rows.
template <int kVector>
struct Strip {
  __device__ Strip(const Parameters& p, int32_t extent) {
    const uint32_t vectors = static_cast<uint32_t>(p.channels) / kVector;
    const uint32_t row_tile = blockIdx.x / p.tiles_per_row;
    const uint32_t row = row_tile * blockDim.y + threadIdx.y;
    const uint32_t item =
        (blockIdx.x - row_tile * p.tiles_per_row) * blockDim.x + threadIdx.x;
    const uint32_t strip = item / vectors;
    exists = row < p.rows && strip < p.strips_per_row;
    image = static_cast<int32_t>(row / static_cast<uint32_t>(extent));
    h = static_cast<int32_t>(row) - image * extent;
    index = static_cast<int32_t>(strip);
    channel = static_cast<int32_t>(item - strip * vectors) * kVector;
  }

  // Returns the address of the thread's channels in image `image`.
  template <typename T>
  __device__ T* ImageOf(const Parameters& p, const DeviceElements& images,
                        int32_t height, int32_t width) const {
    return static_cast<T*>(images.data) +
           static_cast<int64_t>(image) * (height * width * p.channels) +
           channel;
  }
  template <typename T>
  __device__ T* X(const Parameters& p) const {
    return ImageOf<T>(p, p.x, p.height.input_extent, p.width.input_extent);
  }
  template <typename T>
  __device__ T* Y(const Parameters& p) const {
    return ImageOf<T>(p, p.y, p.height.output_extent, p.width.output_extent);
  }
  template <typename T>
  __device__ const T* Kernel(const Parameters& p) const {
    return static_cast<const T*>(p.kernel.data) + channel;
  }

  bool exists;
  int32_t image, h;  // Row h of the image.
  int32_t index;     // Index of the strip in the row.
  int32_t channel;
};

// Computes y for windows of kWindow x kWindow.
template <typename T, int kVector, int kWindow, int kStride>
__device__ void Forward(const Parameters& p) {
  constexpr int kPixels = Parameters::kImagePixels / kStride;
  const Strip<kVector> strip(p, p.height.output_extent);
  if (!strip.exists) return;
  const T* const x = strip.template X<T>(p);
  const T* const kernel = strip.template Kernel<T>(p);
  const int32_t extent = p.width.input_extent;
  const int32_t w = strip.index * (kPixels * kStride) - p.width.padding_before;
  float sums[kPixels][kVector] = {};
  MUSTER_KEEP_LOOP
  for (int32_t kh = 0; kh < kWindow; ++kh) {
    const int32_t h = strip.h * kStride - p.height.padding_before + kh;
    if (!IsIn(h, p.height.input_extent)) continue;
    Pixel<T, kVector> weights[kWindow];
    Pixel<T, kVector> pixels[(kPixels - 1) * kStride + kWindow];
    LoadPixels(p, kernel, kh * kWindow, kWindow * kWindow, weights);
    LoadPixels(p, x + h * extent * p.channels, w, extent, pixels);
    MUSTER_UNROLL
    for (int i = 0; i < kPixels; ++i) {
      MUSTER_UNROLL
      for (int kw = 0; kw < kWindow; ++kw) {
        AddProducts(pixels[i * kStride + kw], weights[kw], sums[i]);
      }
    }
  }
  StorePixels(
      p, strip.template Y<T>(p) + strip.h * p.width.output_extent * p.channels,
      strip.index * kPixels, p.width.output_extent, sums);
}

// Computes y for any windows, one pixel in each thread.
template <typename T, int kVector>
__device__ void ForwardAny(const Parameters& p) {
  const Strip<kVector> strip(p, p.height.output_extent);
  if (!strip.exists) return;
  const T* const kernel = strip.template Kernel<T>(p);
  const int32_t height = p.height.window_extent;
  const int32_t width = p.width.window_extent;
  const int32_t extent = p.width.input_extent;
  const int32_t h = strip.h * p.height.stride - p.height.padding_before;
  const int32_t w = strip.index * p.width.stride - p.width.padding_before;
  float sums[1][kVector] = {};
  for (int32_t kh = h < 0 ? -h : 0;
       kh < height && h + kh < p.height.input_extent; ++kh) {
    const T* const x = strip.template X<T>(p) + (h + kh) * extent * p.channels;
    for (int32_t kw = w < 0 ? -w : 0; kw < width && w + kw < extent; ++kw) {
      Pixel<T, kVector> weight[1], pixel[1];
      LoadPixels(p, kernel, kh * width + kw, height * width, weight);
      LoadPixels(p, x, w + kw, extent, pixel);
      AddProducts(pixel[0], weight[0], sums[0]);
    }
  }
  StorePixels(
      p, strip.template Y<T>(p) + strip.h * p.width.output_extent * p.channels,
      strip.index, p.width.output_extent, sums);
}

// Computes the gradient of x for windows of kWindow x kWindow. Strips begin
// where a window may begin, so the compiler can determine which pixels of a
// strip a tap reaches.
template <typename T, int kVector, int kWindow, int kStride>
__device__ void BackpropInput(const Parameters& p) {
  constexpr int kPixels = Parameters::kImagePixels;
  // Pixels of y before the window that begins with the strip.
  constexpr int kBefore = (kWindow - 1) / kStride;
  static_assert(kPixels % kStride == 0);
  const Strip<kVector> strip(p, p.height.input_extent);
  if (!strip.exists) return;
  const T* const y = strip.template Y<T>(p);
  const T* const kernel = strip.template Kernel<T>(p);
  const int32_t extent = p.width.output_extent;
  const int32_t window =
      strip.index * (kPixels / kStride) + p.width.padding_before / kStride;
  float sums[kPixels][kVector] = {};
  MUSTER_KEEP_LOOP
  for (int32_t kh = 0; kh < kWindow; ++kh) {
    const int32_t distance = strip.h + p.height.padding_before - kh;
    const int32_t h = distance / kStride;
    if (distance < 0 || h * kStride != distance ||
        h >= p.height.output_extent) {
      continue;
    }
    Pixel<T, kVector> weights[kWindow];
    Pixel<T, kVector> pixels[kBefore + (kPixels - 1) / kStride + 1];
    LoadPixels(p, kernel, kh * kWindow, kWindow * kWindow, weights);
    LoadPixels(p, y + h * extent * p.channels, window - kBefore, extent,
               pixels);
    MUSTER_UNROLL
    for (int i = 0; i < kPixels; ++i) {
      MUSTER_UNROLL
      for (int kw = i % kStride; kw < kWindow; kw += kStride) {
        AddProducts(pixels[kBefore + (i - kw) / kStride], weights[kw], sums[i]);
      }
    }
  }
  const int32_t w = strip.index * kPixels - p.width.padding_before % kStride;
  StorePixels(
      p, strip.template X<T>(p) + strip.h * p.width.input_extent * p.channels,
      w, p.width.input_extent, sums);
}

// Computes the gradient of x for any windows, one pixel in each thread.
template <typename T, int kVector>
__device__ void BackpropInputAny(const Parameters& p) {
  const Strip<kVector> strip(p, p.height.input_extent);
  if (!strip.exists) return;
  const T* const kernel = strip.template Kernel<T>(p);
  const int32_t height = p.height.window_extent;
  const int32_t width = p.width.window_extent;
  const int32_t extent = p.width.output_extent;
  // Relative to the beginnings of the first windows.
  const int32_t below = strip.h + p.height.padding_before;
  const int32_t beside = strip.index + p.width.padding_before;
  float sums[1][kVector] = {};
  // The last windows that contain the pixel have it at their first taps.
  int32_t h = below / p.height.stride;
  for (int32_t kh = below - h * p.height.stride; kh < height && h >= 0;
       kh += p.height.stride, --h) {
    if (h >= p.height.output_extent) continue;
    const T* const y = strip.template Y<T>(p) + h * extent * p.channels;
    int32_t w = beside / p.width.stride;
    for (int32_t kw = beside - w * p.width.stride; kw < width && w >= 0;
         kw += p.width.stride, --w) {
      Pixel<T, kVector> weight[1], pixel[1];
      LoadPixels(p, kernel, kh * width + kw, height * width, weight);
      LoadPixels(p, y, w, extent, pixel);
      AddProducts(pixel[0], weight[0], sums[0]);
    }
  }
  StorePixels(
      p, strip.template X<T>(p) + strip.h * p.width.input_extent * p.channels,
      strip.index, p.width.input_extent, sums);
}

// Iterates over a thread's strips of y in its block's part.
struct StripsOfLane {
  __device__ explicit StripsOfLane(const Parameters& p)
      : height(p.height.output_extent), width(p.strips_per_row) {
    const uint32_t first = blockIdx.x * p.part_strips;
    const uint32_t count =
        p.strips - first < p.part_strips ? p.strips - first : p.part_strips;
    left = static_cast<int32_t>(count) - static_cast<int32_t>(threadIdx.y);
    Divide(first + threadIdx.y, &image, &h, &index);
    Divide(blockDim.y, &image_step, &h_step, &index_step);
  }

  __device__ void Divide(uint32_t strips, uint32_t* images, uint32_t* rows,
                         uint32_t* rest) const {
    const uint32_t all_rows = strips / width;
    *rest = strips - all_rows * width;
    *images = all_rows / height;
    *rows = all_rows - *images * height;
  }

  __device__ void Advance() {
    left -= static_cast<int32_t>(blockDim.y);
    index += index_step;
    h += h_step;
    image += image_step;
    if (index >= width) {
      index -= width;
      ++h;
    }
    if (h >= height) {
      h -= height;
      ++image;
    }
  }

  uint32_t height, width;
  int32_t left;  // Strips until the end of the part.
  uint32_t image, h, index;
  uint32_t image_step, h_step, index_step;
};

// Adds the sums of a block's lanes and writes the sums of the part. Only `taps`
// of the kTaps taps exist; the first one is tap `first_tap` of the window.
template <int kVector, int kTaps>
__device__ void StoreSums(const Parameters& p, int32_t first_tap, int32_t taps,
                          const float (&sums)[kTaps][kVector], float* shared) {
  constexpr int kRound = 3;  // Taps in shared memory at a time.
  const uint32_t threads = blockDim.x * blockDim.y;
  const uint32_t thread = threadIdx.y * blockDim.x + threadIdx.x;
  // Makes adjacent threads read different banks.
  const uint32_t pitch = (threads + 31) / 32 * 32 + 32 / kVector;
  const int32_t window = p.height.window_extent * p.width.window_extent;
  MUSTER_UNROLL
  for (int first = 0; first < kTaps; first += kRound) {
    if (first > 0) __syncthreads();
    MUSTER_UNROLL
    for (int i = 0; i < kRound && first + i < kTaps; ++i) {
      MUSTER_UNROLL
      for (int v = 0; v < kVector; ++v) {
        shared[(i * kVector + v) * pitch + thread] = sums[first + i][v];
      }
    }
    __syncthreads();
    const uint32_t columns = blockDim.x * kVector;
    for (uint32_t i = thread; i < kRound * columns; i += threads) {
      const uint32_t round_tap = i / columns;
      const int32_t tap = first + static_cast<int32_t>(round_tap);
      const uint32_t column = i - round_tap * columns;
      const int64_t channel =
          static_cast<int64_t>(blockIdx.y) * columns + column;
      if (tap >= taps || channel >= p.channels) continue;
      const float* const from =
          shared + (round_tap * kVector + column % kVector) * pitch +
          column / kVector;
      double sum = 0;
      for (uint32_t lane = 0; lane < blockDim.y; ++lane) {
        sum += from[lane * blockDim.x];
      }
      const int64_t row =
          static_cast<int64_t>(blockIdx.x) * window + first_tap + tap;
      p.part_values[row * p.channels + channel] = static_cast<float>(sum);
    }
  }
}

// Returns the address of the thread's channels in an image of x or y.
template <typename T>
__device__ const T* ImageOf(const Parameters& p, const DeviceElements& images,
                            uint32_t image, int32_t height, int32_t width,
                            int32_t channel) {
  return static_cast<const T*>(images.data) +
         static_cast<int64_t>(image) * (height * width * p.channels) + channel;
}

// Computes the sums of a part for each tap of windows of kWindow x kWindow.
template <typename T, int kVector, int kWindow, int kStride>
__device__ void SumTaps(const Parameters& p, float* shared) {
  constexpr int kPixels = Parameters::kKernelPixels;
  const int32_t channel =
      static_cast<int32_t>(blockIdx.y * blockDim.x + threadIdx.x) * kVector;
  const int32_t x_extent = p.width.input_extent;
  const int32_t y_extent = p.width.output_extent;
  float sums[kWindow * kWindow][kVector] = {};
  StripsOfLane strips(p);
  if (channel >= p.channels) strips.left = 0;
  MUSTER_KEEP_LOOP
  for (; strips.left > 0; strips.Advance()) {
    const T* const x = ImageOf<T>(p, p.x, strips.image, p.height.input_extent,
                                  x_extent, channel);
    const T* const y = ImageOf<T>(p, p.y, strips.image, p.height.output_extent,
                                  y_extent, channel);
    const int32_t oh = static_cast<int32_t>(strips.h);
    const int32_t ow = static_cast<int32_t>(strips.index) * kPixels;
    const int32_t w = ow * kStride - p.width.padding_before;
    Pixel<T, kVector> gradients[kPixels];
    LoadPixels(p, y + oh * y_extent * p.channels, ow, y_extent, gradients);
    MUSTER_UNROLL
    for (int kh = 0; kh < kWindow; ++kh) {
      const int32_t h = oh * kStride - p.height.padding_before + kh;
      if (!IsIn(h, p.height.input_extent)) continue;
      Pixel<T, kVector> pixels[(kPixels - 1) * kStride + kWindow];
      LoadPixels(p, x + h * x_extent * p.channels, w, x_extent, pixels);
      MUSTER_UNROLL
      for (int i = 0; i < kPixels; ++i) {
        MUSTER_UNROLL
        for (int kw = 0; kw < kWindow; ++kw) {
          AddProducts(pixels[i * kStride + kw], gradients[i],
                      sums[kh * kWindow + kw]);
        }
      }
    }
  }
  StoreSums(p, 0, kWindow * kWindow, sums, shared);
}

// Computes the sums of a part for a run of taps of any windows.
template <typename T, int kVector>
__device__ void SumRunOfTaps(const Parameters& p, float* shared) {
  constexpr int kTaps = Parameters::kRunTaps;
  const uint32_t width = static_cast<uint32_t>(p.width.window_extent);
  const uint32_t runs = (width + kTaps - 1) / kTaps;
  const int32_t kh = static_cast<int32_t>(blockIdx.z / runs);
  const int32_t first_kw = static_cast<int32_t>(blockIdx.z % runs) * kTaps;
  const int32_t taps = p.width.window_extent - first_kw;
  const int32_t channel =
      static_cast<int32_t>(blockIdx.y * blockDim.x + threadIdx.x) * kVector;
  const int32_t x_extent = p.width.input_extent;
  const int32_t y_extent = p.width.output_extent;
  float sums[kTaps][kVector] = {};
  StripsOfLane strips(p);
  if (channel >= p.channels) strips.left = 0;
  MUSTER_KEEP_LOOP
  for (; strips.left > 0; strips.Advance()) {
    const int32_t oh = static_cast<int32_t>(strips.h);
    const int32_t h = oh * p.height.stride - p.height.padding_before + kh;
    if (!IsIn(h, p.height.input_extent)) continue;
    const T* const x = ImageOf<T>(p, p.x, strips.image, p.height.input_extent,
                                  x_extent, channel) +
                       h * x_extent * p.channels;
    const T* const y = ImageOf<T>(p, p.y, strips.image, p.height.output_extent,
                                  y_extent, channel) +
                       oh * y_extent * p.channels;
    const int32_t ow = static_cast<int32_t>(strips.index);
    const int32_t w = ow * p.width.stride - p.width.padding_before + first_kw;
    // Excludes pixels after the window.
    const int32_t end = w + taps < x_extent ? w + taps : x_extent;
    Pixel<T, kVector> gradient[1];
    Pixel<T, kVector> pixels[kTaps];
    LoadPixels(p, y, ow, y_extent, gradient);
    LoadPixels(p, x, w, end < 0 ? 0 : end, pixels);
    MUSTER_UNROLL
    for (int kw = 0; kw < kTaps; ++kw) {
      AddProducts(pixels[kw], gradient[0], sums[kw]);
    }
  }
  StoreSums(p, kh * p.width.window_extent + first_kw,
            taps < kTaps ? taps : kTaps, sums, shared);
}

// Calls visit.operator()<T, kVector>() with vectors of 16 bytes.
template <typename Visit>
__device__ void VisitVectors(const Parameters& p, const Visit& visit) {
  switch (p.x.type) {
    case ElementType::kBfloat16:
      return visit.template operator()<bfloat16, 8>();
    case ElementType::kFloat16:
      return visit.template operator()<float16, 8>();
    default:
      return visit.template operator()<float, 4>();
  }
}

// As VisitVectors(), or for single elements.
template <typename Visit>
__device__ void VisitAll(const Parameters& p, const Visit& visit) {
  if (p.vector > 1) return VisitVectors(p, visit);
  switch (p.x.type) {
    case ElementType::kBfloat16:
      return visit.template operator()<bfloat16, 1>();
    case ElementType::kFloat16:
      return visit.template operator()<float16, 1>();
    default:
      return visit.template operator()<float, 1>();
  }
}

// Size for StoreSums(): 3 taps of 256 threads with up to 8 elements, plus the
// padding of the pitch.
constexpr int kSharedFloats = 3 * 8 * (Parameters::kThreads + 4);

template <int kWindow, int kStride>
struct TapsSummer {
  template <typename T, int kVector>
  __device__ void operator()() const {
    SumTaps<T, kVector, kWindow, kStride>(p, shared);
  }
  const Parameters& p;
  float* shared;
};
struct RunOfTapsSummer {
  template <typename T, int kVector>
  __device__ void operator()() const {
    SumRunOfTaps<T, kVector>(p, shared);
  }
  const Parameters& p;
  float* shared;
};

}  // namespace
}  // namespace muster::internal

using namespace muster::internal;  // NOLINT

// The kernels of 3 x 3 windows process vectors. There is one for each stride,
// because a kernel reserves registers for all of its branches.

extern "C" __global__ void __launch_bounds__(Parameters::kThreads)
    depthwise_forward(const __grid_constant__ DepthwiseParameters p) {
  AwaitPrecedingKernel();
  VisitAll(p, [&]<typename T, int kVector> { ForwardAny<T, kVector>(p); });
}

extern "C" __global__ void __launch_bounds__(Parameters::kThreads, 2)
    depthwise_forward_3x3(const __grid_constant__ DepthwiseParameters p) {
  AwaitPrecedingKernel();
  VisitVectors(p,
               [&]<typename T, int kVector> { Forward<T, kVector, 3, 1>(p); });
}

extern "C" __global__ void __launch_bounds__(Parameters::kThreads, 2)
    depthwise_forward_3x3_stride_2(
        const __grid_constant__ DepthwiseParameters p) {
  AwaitPrecedingKernel();
  VisitVectors(p,
               [&]<typename T, int kVector> { Forward<T, kVector, 3, 2>(p); });
}

extern "C" __global__ void __launch_bounds__(Parameters::kThreads)
    depthwise_input(const __grid_constant__ DepthwiseParameters p) {
  AwaitPrecedingKernel();
  VisitAll(p,
           [&]<typename T, int kVector> { BackpropInputAny<T, kVector>(p); });
}

extern "C" __global__ void __launch_bounds__(Parameters::kThreads, 2)
    depthwise_input_3x3(const __grid_constant__ DepthwiseParameters p) {
  AwaitPrecedingKernel();
  VisitVectors(
      p, [&]<typename T, int kVector> { BackpropInput<T, kVector, 3, 1>(p); });
}

extern "C" __global__ void __launch_bounds__(Parameters::kThreads, 2)
    depthwise_input_3x3_stride_2(
        const __grid_constant__ DepthwiseParameters p) {
  AwaitPrecedingKernel();
  VisitVectors(
      p, [&]<typename T, int kVector> { BackpropInput<T, kVector, 3, 2>(p); });
}

extern "C" __global__ void __launch_bounds__(Parameters::kThreads)
    depthwise_kernel(const __grid_constant__ DepthwiseParameters p) {
  AwaitPrecedingKernel();
  __shared__ float shared[kSharedFloats];
  VisitAll(p, RunOfTapsSummer{p, shared});
}

extern "C" __global__ void __launch_bounds__(Parameters::kThreads, 2)
    depthwise_kernel_3x3(const __grid_constant__ DepthwiseParameters p) {
  AwaitPrecedingKernel();
  __shared__ float shared[kSharedFloats];
  VisitVectors(p, TapsSummer<3, 1>{p, shared});
}

extern "C" __global__ void __launch_bounds__(Parameters::kThreads, 2)
    depthwise_kernel_3x3_stride_2(
        const __grid_constant__ DepthwiseParameters p) {
  AwaitPrecedingKernel();
  __shared__ float shared[kSharedFloats];
  VisitVectors(p, TapsSummer<3, 2>{p, shared});
}

// Adds up the parts of each tap and channel.
extern "C" __global__ void __launch_bounds__(Parameters::kCombineThreads)
    depthwise_combine(const __grid_constant__ DepthwiseParameters p) {
  AwaitPrecedingKernel();
  __shared__ double shared[Parameters::kCombineThreads];
  const int64_t columns = static_cast<int64_t>(p.height.window_extent) *
                          p.width.window_extent * p.channels;
  const int64_t column = GlobalThread();
  double sum = 0;
  if (column < columns) {
    for (uint32_t i = threadIdx.y; i < p.part_count; i += blockDim.y) {
      sum += p.part_values[i * columns + column];
    }
  }
  shared[threadIdx.y * blockDim.x + threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  for (uint32_t lane = 1; lane < blockDim.y; ++lane) {
    sum += shared[lane * blockDim.x + threadIdx.x];
  }
  StoreElement(p.kernel, column, sum);
}

MUSTER_SIMULATED_KERNELS(depthwise, MUSTER_PLAIN_KERNEL(depthwise_forward),
                         MUSTER_PLAIN_KERNEL(depthwise_forward_3x3),
                         MUSTER_PLAIN_KERNEL(depthwise_forward_3x3_stride_2),
                         MUSTER_PLAIN_KERNEL(depthwise_input),
                         MUSTER_PLAIN_KERNEL(depthwise_input_3x3),
                         MUSTER_PLAIN_KERNEL(depthwise_input_3x3_stride_2),
                         MUSTER_BARRIER_KERNEL(depthwise_kernel),
                         MUSTER_BARRIER_KERNEL(depthwise_kernel_3x3),
                         MUSTER_BARRIER_KERNEL(depthwise_kernel_3x3_stride_2),
                         MUSTER_BARRIER_KERNEL(depthwise_combine))
