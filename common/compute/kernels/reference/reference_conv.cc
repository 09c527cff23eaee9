#include <cstdint>

#include "common/compute/kernels/image_geometry.h"
#include "common/compute/kernels/reference/elements.h"
#include "common/compute/kernels/reference/register_reference_kernels.h"
#include "common/core/base/status_macros.h"

namespace muster::internal {
namespace {

// The offsets of elements of images and kernels.
struct ConvIndex {
  ConvGeometry g;

  int64_t X(int64_t n, int64_t h, int64_t w, int64_t c) const {
    return ((n * g.height.input_extent + h) * g.width.input_extent + w) *
               g.input_channels +
           c;
  }
  int64_t Y(int64_t n, int64_t h, int64_t w, int64_t c) const {
    return ((n * g.height.output_extent + h) * g.width.output_extent + w) *
               g.output_channels +
           c;
  }
  // `input` is an index within the group of `output`.
  int64_t Kernel(int64_t h, int64_t w, int64_t input, int64_t output) const {
    return ((h * g.width.window_extent + w) * g.group_inputs() + input) *
               g.output_channels +
           output;
  }
};

// Returns the input position of element `k` of window `i`; -1 in the padding.
int64_t InputOf(const WindowAxis& axis, int64_t i, int64_t k) {
  const int64_t at = i * axis.stride - axis.padding_before + k * axis.dilation;
  return at < axis.input_extent ? at : -1;
}

// Returns the window whose element `k` is input `at`; -1 if there is none.
int64_t WindowOf(const WindowAxis& axis, int64_t at, int64_t k) {
  const int64_t begin = at + axis.padding_before - k * axis.dilation;
  if (begin < 0 || begin % axis.stride != 0) return -1;
  const int64_t i = begin / axis.stride;
  return i < axis.output_extent ? i : -1;
}

template <typename T>
Accumulated<T> Product(absl::Span<const T> a, int64_t i, absl::Span<const T> b,
                       int64_t j) {
  return static_cast<Accumulated<T>>(Widen(a[i])) *
         static_cast<Accumulated<T>>(Widen(b[j]));
}

// Returns element (n, h, w, c) of y.
template <typename T>
Accumulated<T> ForwardSum(const ConvIndex& index, absl::Span<const T> x,
                          absl::Span<const T> kernel, int64_t n, int64_t h,
                          int64_t w, int64_t c) {
  const ConvGeometry& g = index.g;
  const int64_t first = c / g.group_outputs() * g.group_inputs();
  Accumulated<T> sum = 0;
  for (int64_t kh = 0; kh < g.height.window_extent; ++kh) {
    const int64_t ih = InputOf(g.height, h, kh);
    for (int64_t kw = 0; kw < g.width.window_extent && ih >= 0; ++kw) {
      const int64_t iw = InputOf(g.width, w, kw);
      if (iw < 0) continue;
      for (int64_t i = 0; i < g.group_inputs(); ++i) {
        sum += Product(x, index.X(n, ih, iw, first + i), kernel,
                       index.Kernel(kh, kw, i, c));
      }
    }
  }
  return sum;
}

// Returns element (n, h, w, c) of the gradient of x.
template <typename T>
Accumulated<T> BackpropInputSum(const ConvIndex& index, absl::Span<const T> dy,
                                absl::Span<const T> kernel, int64_t n,
                                int64_t h, int64_t w, int64_t c) {
  const ConvGeometry& g = index.g;
  const int64_t first = c / g.group_inputs() * g.group_outputs();
  const int64_t input = c % g.group_inputs();
  Accumulated<T> sum = 0;
  for (int64_t kh = 0; kh < g.height.window_extent; ++kh) {
    const int64_t oh = WindowOf(g.height, h, kh);
    for (int64_t kw = 0; kw < g.width.window_extent && oh >= 0; ++kw) {
      const int64_t ow = WindowOf(g.width, w, kw);
      if (ow < 0) continue;
      for (int64_t o = first; o < first + g.group_outputs(); ++o) {
        sum += Product(dy, index.Y(n, oh, ow, o), kernel,
                       index.Kernel(kh, kw, input, o));
      }
    }
  }
  return sum;
}

// Returns element (kh, kw, input, o) of the gradient of the kernel.
template <typename T>
Accumulated<T> BackpropKernelSum(const ConvIndex& index, absl::Span<const T> x,
                                 absl::Span<const T> dy, int64_t kh, int64_t kw,
                                 int64_t input, int64_t o) {
  const ConvGeometry& g = index.g;
  const int64_t c = o / g.group_outputs() * g.group_inputs() + input;
  Accumulated<T> sum = 0;
  for (int64_t n = 0; n < g.batch; ++n) {
    for (int64_t h = 0; h < g.height.output_extent; ++h) {
      const int64_t ih = InputOf(g.height, h, kh);
      for (int64_t w = 0; w < g.width.output_extent && ih >= 0; ++w) {
        const int64_t iw = InputOf(g.width, w, kw);
        if (iw < 0) continue;
        sum += Product(x, index.X(n, ih, iw, c), dy, index.Y(n, h, w, o));
      }
    }
  }
  return sum;
}

// Makes a kernel that computes each element of a 4-dimensional output as `kSum`
// of its position.
template <auto kSum, typename T>
KernelOr MakeSums(const ConvIndex& index, const Shape& shape) {
  return MakeKernel([index, shape](const KernelArguments& arguments) {
    const auto a = arguments.inputs[0]->flat<T>();
    const auto b = arguments.inputs[1]->flat<T>();
    T* out = arguments.outputs[0]->mutable_flat<T>().data();
    for (int64_t i = 0; i < shape.dim(0); ++i) {
      for (int64_t j = 0; j < shape.dim(1); ++j) {
        for (int64_t k = 0; k < shape.dim(2); ++k) {
          for (int64_t l = 0; l < shape.dim(3); ++l) {
            *out++ = Narrow<T>(kSum(index, a, b, i, j, k, l));
          }
        }
      }
    }
    return absl::OkStatus();
  });
}

KernelOr MakeConv(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(const ConvGeometry geometry, ConvGeometry::Of(spec));
  const ConvIndex index = {geometry};
  Shape shape = spec.outputs[0].shape;
  if (geometry.part == ConvPart::kBackpropKernel) {
    // Treats a depthwise kernel as a grouped one.
    shape.set_dim(2, geometry.group_inputs());
    shape.set_dim(3, geometry.output_channels);
  }
  const auto make = [&]<typename T>() -> KernelOr {
    switch (geometry.part) {
      case ConvPart::kForward:
        return MakeSums<ForwardSum<T>, T>(index, shape);
      case ConvPart::kBackpropInput:
        return MakeSums<BackpropInputSum<T>, T>(index, shape);
      case ConvPart::kBackpropKernel:
        return MakeSums<BackpropKernelSum<T>, T>(index, shape);
    }
    return UnsupportedTypes(spec);
  };
  return VisitSupported<Supported::kFloating>(spec.outputs[0].dtype, spec,
                                              make);
}

}  // namespace

void RegisterConvKernels(KernelRegistry* registry) {
  for (const char* op :
       {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropKernel",
        "DepthwiseConv2D", "DepthwiseConv2DBackpropInput",
        "DepthwiseConv2DBackpropKernel"}) {
    RegisterReference(registry, op, MakeConv);
  }
}

}  // namespace muster::internal
