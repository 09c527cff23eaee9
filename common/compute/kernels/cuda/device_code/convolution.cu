// Convolutions and their gradients, directly from the definition. Used if there
// is no library of convolutions or it does not support the case.

#include "common/compute/kernels/cuda/device_code/device_functions.h"
#include "common/compute/kernels/cuda/device_code/kernel_parameters.h"
#include "common/core/device/device_language.h"

namespace muster::internal {
namespace {

// Returns the input position of element `k` of window `i`; negative in the
// padding.
__device__ int64_t InputOf(const DeviceWindow& axis, int64_t i, int64_t k) {
  const int64_t at = i * axis.stride - axis.padding_before + k * axis.dilation;
  return at < axis.input_extent ? at : -1;
}

// Returns the window whose element `k` is input `at`; -1 if there is none.
__device__ int64_t WindowOf(const DeviceWindow& axis, int64_t at, int64_t k) {
  const int64_t begin = at + axis.padding_before - k * axis.dilation;
  if (begin < 0 || begin % axis.stride != 0) return -1;
  const int64_t i = begin / axis.stride;
  return i < axis.output_extent ? i : -1;
}

__device__ int64_t XIndex(const ConvParameters& p, int64_t n, int64_t h,
                          int64_t w, int64_t c) {
  return ((n * p.height.input_extent + h) * p.width.input_extent + w) *
             p.input_channels +
         c;
}

__device__ int64_t YIndex(const ConvParameters& p, int64_t n, int64_t h,
                          int64_t w, int64_t c) {
  return ((n * p.height.output_extent + h) * p.width.output_extent + w) *
             p.output_channels +
         c;
}

// `input` is an index within the group of `output`.
__device__ int64_t KernelIndex(const ConvParameters& p, int64_t h, int64_t w,
                               int64_t input, int64_t output) {
  return ((h * p.width.window_extent + w) * p.group_inputs + input) *
             p.output_channels +
         output;
}

template <typename C>
__device__ void Forward(const ConvParameters& p) {
  const int64_t thread = GlobalThread();
  if (thread >= p.count) return;
  const int64_t c = thread % p.output_channels;
  int64_t rest = thread / p.output_channels;
  const int64_t w = rest % p.width.output_extent;
  rest /= p.width.output_extent;
  const int64_t h = rest % p.height.output_extent;
  const int64_t n = rest / p.height.output_extent;
  const int64_t first = c / p.group_outputs * p.group_inputs;
  C sum = C(0);
  for (int64_t kh = 0; kh < p.height.window_extent; ++kh) {
    const int64_t ih = InputOf(p.height, h, kh);
    for (int64_t kw = 0; kw < p.width.window_extent && ih >= 0; ++kw) {
      const int64_t iw = InputOf(p.width, w, kw);
      if (iw < 0) continue;
      const int64_t x = XIndex(p, n, ih, iw, first);
      for (int64_t i = 0; i < p.group_inputs; ++i) {
        sum += LoadElement<C>(p.x, x + i) *
               LoadElement<C>(p.kernel, KernelIndex(p, kh, kw, i, c));
      }
    }
  }
  StoreElement(p.y, thread, sum);
}

template <typename C>
__device__ void BackpropInput(const ConvParameters& p) {
  const int64_t thread = GlobalThread();
  if (thread >= p.count) return;
  const int64_t c = thread % p.input_channels;
  int64_t rest = thread / p.input_channels;
  const int64_t w = rest % p.width.input_extent;
  rest /= p.width.input_extent;
  const int64_t h = rest % p.height.input_extent;
  const int64_t n = rest / p.height.input_extent;
  const int64_t first = c / p.group_inputs * p.group_outputs;
  C sum = C(0);
  for (int64_t kh = 0; kh < p.height.window_extent; ++kh) {
    const int64_t oh = WindowOf(p.height, h, kh);
    for (int64_t kw = 0; kw < p.width.window_extent && oh >= 0; ++kw) {
      const int64_t ow = WindowOf(p.width, w, kw);
      if (ow < 0) continue;
      const int64_t kernel = KernelIndex(p, kh, kw, c % p.group_inputs, first);
      const int64_t y = YIndex(p, n, oh, ow, first);
      for (int64_t o = 0; o < p.group_outputs; ++o) {
        sum +=
            LoadElement<C>(p.y, y + o) * LoadElement<C>(p.kernel, kernel + o);
      }
    }
  }
  StoreElement(p.x, thread, sum);
}

// Sums over the whole batch, in double precision.
__device__ void BackpropKernel(const ConvParameters& p) {
  const int64_t thread = GlobalThread();
  if (thread >= p.count) return;
  const int64_t o = thread % p.output_channels;
  int64_t rest = thread / p.output_channels;
  const int64_t input = rest % p.group_inputs;
  rest /= p.group_inputs;
  const int64_t kw = rest % p.width.window_extent;
  const int64_t kh = rest / p.width.window_extent;
  const int64_t c = o / p.group_outputs * p.group_inputs + input;
  double sum = 0;
  for (int64_t n = 0; n < p.batch; ++n) {
    for (int64_t h = 0; h < p.height.output_extent; ++h) {
      const int64_t ih = InputOf(p.height, h, kh);
      for (int64_t w = 0; w < p.width.output_extent && ih >= 0; ++w) {
        const int64_t iw = InputOf(p.width, w, kw);
        if (iw < 0) continue;
        sum += LoadElement<double>(p.x, XIndex(p, n, ih, iw, c)) *
               LoadElement<double>(p.y, YIndex(p, n, h, w, o));
      }
    }
  }
  StoreElement(p.kernel, thread, sum);
}

}  // namespace
}  // namespace muster::internal

using namespace muster::internal;  // NOLINT

extern "C" __global__ void conv_forward_float(
    const __grid_constant__ ConvParameters p) {
  AwaitPrecedingKernel();
  Forward<float>(p);
}

extern "C" __global__ void conv_forward_double(
    const __grid_constant__ ConvParameters p) {
  AwaitPrecedingKernel();
  Forward<double>(p);
}

extern "C" __global__ void conv_input_float(
    const __grid_constant__ ConvParameters p) {
  AwaitPrecedingKernel();
  BackpropInput<float>(p);
}

extern "C" __global__ void conv_input_double(
    const __grid_constant__ ConvParameters p) {
  AwaitPrecedingKernel();
  BackpropInput<double>(p);
}

extern "C" __global__ void conv_kernel(
    const __grid_constant__ ConvParameters p) {
  AwaitPrecedingKernel();
  BackpropKernel(p);
}

MUSTER_SIMULATED_KERNELS(convolution, MUSTER_PLAIN_KERNEL(conv_forward_float),
                         MUSTER_PLAIN_KERNEL(conv_forward_double),
                         MUSTER_PLAIN_KERNEL(conv_input_float),
                         MUSTER_PLAIN_KERNEL(conv_input_double),
                         MUSTER_PLAIN_KERNEL(conv_kernel))
