#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "common/compute/kernels/image_sampling.h"
#include "common/compute/kernels/reference/elements.h"
#include "common/compute/kernels/reference/register_reference_kernels.h"
#include "common/core/tensor/resize.h"

namespace muster::internal {
namespace {

bool IsBilinear(const KernelSpec& spec) {
  return spec.attributes.GetOr<std::string>("interpolation", "") == "bilinear";
}

// Returns the accumulators of an output.
template <typename T>
std::vector<Accumulated<T>> Sums(const KernelSpec& spec) {
  return std::vector<Accumulated<T>>(spec.outputs[0].shape.element_count());
}

// The taps of both axes for resizing images from shape `from` to `to`.
struct ResizePlan {
  ResizePlan(const Shape& from, const Shape& to, bool is_bilinear)
      : from(from),
        to(to),
        rows(ResizeTaps(from.dim(1), to.dim(1), is_bilinear)),
        columns(ResizeTaps(from.dim(2), to.dim(2), is_bilinear)) {}

  // Calls use(i, j, weight) if pixel j of `from` contributes with `weight` to
  // pixel i of `to`. The channels of both are contiguous.
  template <typename Use>
  void ForEachWeight(Use use) const {
    int64_t to_pixel = 0;
    for (int64_t image = 0; image < to.dim(0); ++image) {
      for (const BilinearTap& row : rows) {
        for (const BilinearTap& column : columns) {
          ForEachCorner(row, column, [&](int64_t y, int64_t x, float weight) {
            use(to_pixel, (image * from.dim(1) + y) * from.dim(2) + x, weight);
          });
          ++to_pixel;
        }
      }
    }
  }

  template <typename Use>
  static void ForEachCorner(const BilinearTap& row, const BilinearTap& column,
                            Use use) {
    for (const bool lower_row : {true, false}) {
      if (!lower_row && row.upper_weight == 0) continue;
      const float row_weight =
          lower_row ? 1 - row.upper_weight : row.upper_weight;
      const int64_t y = lower_row ? row.lower : row.upper;
      use(y, column.lower, row_weight * (1 - column.upper_weight));
      if (column.upper_weight != 0) {
        use(y, column.upper, row_weight * column.upper_weight);
      }
    }
  }

  const Shape from;
  const Shape to;
  const std::vector<BilinearTap> rows;
  const std::vector<BilinearTap> columns;
};

// Forward, adds to each output pixel its share of the input pixels. In the
// gradient, adds the gradient of each resized pixel to the pixels that
// contributed to it.
template <bool kIsGradient>
KernelOr MakeResize(const KernelSpec& spec) {
  const ResizePlan plan(
      kIsGradient ? spec.outputs[0].shape : spec.inputs[0].shape,
      kIsGradient ? spec.inputs[0].shape : spec.outputs[0].shape,
      IsBilinear(spec));
  const auto make = [&]<typename T>() {
    return MakeKernel(
        [plan, sums = Sums<T>(spec)](const KernelArguments& arguments) mutable {
          const auto in = arguments.inputs[0]->flat<T>();
          const auto out = arguments.outputs[0]->mutable_flat<T>();
          const int64_t channels = plan.to.dim(3);
          std::fill(sums.begin(), sums.end(), Accumulated<T>(0));
          plan.ForEachWeight([&](int64_t resized, int64_t given, float weight) {
            const int64_t to = (kIsGradient ? given : resized) * channels;
            const int64_t from = (kIsGradient ? resized : given) * channels;
            for (int64_t c = 0; c < channels; ++c) {
              sums[to + c] +=
                  static_cast<Accumulated<T>>(weight) * Widen(in[from + c]);
            }
          });
          for (size_t i = 0; i < out.size(); ++i) out[i] = Narrow<T>(sums[i]);
          return absl::OkStatus();
        });
  };
  constexpr Supported kTypes =
      kIsGradient ? Supported::kFloating : Supported::kNumber;
  return VisitSupported<kTypes>(spec.inputs[0].dtype, spec, make);
}

Border ToBorder(const KernelSpec& spec) {
  const auto name = spec.attributes.GetOr<std::string>("fill_mode", "");
  if (name == "nearest") return Border::kNearest;
  if (name == "reflect") return Border::kReflect;
  return name == "wrap" ? Border::kWrap : Border::kConstant;
}

// Images of one shape, each with its own projection of eight numbers.
struct Projection {
  explicit Projection(const KernelSpec& spec)
      : shape(spec.inputs[0].shape),
        border(ToBorder(spec)),
        is_bilinear(IsBilinear(spec)),
        fill_value(spec.attributes.GetOr("fill_value", 0.0)) {}

  // Calls use(i, j, weight) if pixel j contributes with `weight` to pixel i of
  // the result. j is -1 outside of the image.
  template <typename Use>
  void ForEachWeight(absl::Span<const float> transforms, Use use) const {
    int64_t pixel = 0;
    for (int64_t image = 0; image < shape.dim(0); ++image) {
      const float* const t = transforms.data() + image * 8;
      for (int64_t row = 0; row < shape.dim(1); ++row) {
        for (int64_t column = 0; column < shape.dim(2); ++column, ++pixel) {
          const auto x = static_cast<float>(column);
          const auto y = static_cast<float>(row);
          const float k = t[6] * x + t[7] * y + 1;
          if (k == 0) {
            use(pixel, int64_t{-1}, 1.0f);
            continue;
          }
          const float from_x = (t[0] * x + t[1] * y + t[2]) / k;
          const float from_y = (t[3] * x + t[4] * y + t[5]) / k;
          ForEachCorner(MapToAxis(border, from_x, shape.dim(2)),
                        MapToAxis(border, from_y, shape.dim(1)),
                        [&](float corner_x, float corner_y, float weight) {
                          use(pixel, PixelAt(image, corner_x, corner_y),
                              weight);
                        });
        }
      }
    }
  }

  template <typename Use>
  void ForEachCorner(float x, float y, Use use) const {
    if (!is_bilinear) return use(std::round(x), std::round(y), 1.0f);
    const float x0 = std::floor(x);
    const float y0 = std::floor(y);
    for (const float dy : {0.0f, 1.0f}) {
      for (const float dx : {0.0f, 1.0f}) {
        const float weight_x = dx == 0 ? x0 + 1 - x : x - x0;
        const float weight_y = dy == 0 ? y0 + 1 - y : y - y0;
        use(x0 + dx, y0 + dy, weight_x * weight_y);
      }
    }
  }

  int64_t PixelAt(int64_t image, float x, float y) const {
    if (!IsOnAxis(x, shape.dim(2)) || !IsOnAxis(y, shape.dim(1))) return -1;
    return (image * shape.dim(1) + static_cast<int64_t>(y)) * shape.dim(2) +
           static_cast<int64_t>(x);
  }

  const Shape shape;
  const Border border;
  const bool is_bilinear;
  const double fill_value;
};

KernelOr MakeTransform(const KernelSpec& spec) {
  const Projection projection(spec);
  const auto make = [&]<typename T>() {
    return MakeKernel([projection, sums = Sums<T>(spec)](
                          const KernelArguments& arguments) mutable {
      const auto in = arguments.inputs[0]->flat<T>();
      const auto out = arguments.outputs[0]->mutable_flat<T>();
      const int64_t channels = projection.shape.dim(3);
      std::fill(sums.begin(), sums.end(), Accumulated<T>(0));
      projection.ForEachWeight(
          arguments.inputs[1]->flat<float>(),
          [&](int64_t i, int64_t j, float weight) {
            for (int64_t c = 0; c < channels; ++c) {
              const Accumulated<T> value =
                  j < 0 ? static_cast<Accumulated<T>>(projection.fill_value)
                        : Widen(in[j * channels + c]);
              sums[i * channels + c] +=
                  static_cast<Accumulated<T>>(weight) * value;
            }
          });
      for (size_t i = 0; i < out.size(); ++i) out[i] = Narrow<T>(sums[i]);
      return absl::OkStatus();
    });
  };
  return VisitSupported<Supported::kFloating>(spec.inputs[0].dtype, spec, make);
}

KernelOr MakeTransformGrad(const KernelSpec& spec) {
  const Projection projection(spec);
  const auto make = [&]<typename T>() {
    return MakeKernel([projection, sums = Sums<T>(spec)](
                          const KernelArguments& arguments) mutable {
      const auto in = arguments.inputs[0]->flat<T>();
      const auto out = arguments.outputs[0]->mutable_flat<T>();
      const int64_t channels = projection.shape.dim(3);
      std::fill(sums.begin(), sums.end(), Accumulated<T>(0));
      projection.ForEachWeight(arguments.inputs[1]->flat<float>(),
                               [&](int64_t i, int64_t j, float weight) {
                                 if (j < 0) return;
                                 for (int64_t c = 0; c < channels; ++c) {
                                   sums[j * channels + c] +=
                                       static_cast<Accumulated<T>>(weight) *
                                       Widen(in[i * channels + c]);
                                 }
                               });
      for (size_t i = 0; i < out.size(); ++i) out[i] = Narrow<T>(sums[i]);
      return absl::OkStatus();
    });
  };
  return VisitSupported<Supported::kFloating>(spec.inputs[0].dtype, spec, make);
}

}  // namespace

void RegisterImageKernels(KernelRegistry* registry) {
  RegisterReference(registry, "ResizeImage", MakeResize<false>);
  RegisterReference(registry, "ResizeImageGrad", MakeResize<true>);
  RegisterReference(registry, "ImageTransform", MakeTransform);
  RegisterReference(registry, "ImageTransformGrad", MakeTransformGrad);
}

}  // namespace muster::internal
