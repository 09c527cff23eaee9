#ifndef COMMON_LEARN_NN_IMAGE_RESAMPLING_H_
#define COMMON_LEARN_NN_IMAGE_RESAMPLING_H_

#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/image_ops.h"
#include "common/compute/ops/shape_ops.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/nn/config_visitor.h"

// Helpers of layers that interpolate between pixels.
namespace muster {

// "bilinear" or "nearest".
inline void VisitInterpolation(ConfigVisitor& visitor, Interpolation& value) {
  static constexpr absl::string_view kNames[] = {"bilinear", "nearest"};
  visitor.Visit("interpolation", value, kNames);
}

// Visits the options of layers that also extrapolate, but the seed.
template <typename Options>
void VisitResampling(ConfigVisitor& visitor, Options& options) {
  static constexpr absl::string_view kFillModes[] = {"constant", "nearest",
                                                     "reflect", "wrap"};
  visitor.Visit("fill_mode", options.fill_mode, kFillModes);
  VisitInterpolation(visitor, options.interpolation);
  visitor.Visit("fill_value", options.fill_value);
}

template <typename Options>
ImageTransformOptions ResamplingOf(const Options& options) {
  return {.interpolation = options.interpolation,
          .fill_mode = options.fill_mode,
          .fill_value = options.fill_value};
}

// An element of the transforms of images, [batch, 1], as ImageTransform()
// takes it.
inline Value AsTransformElement(Value drawn) {
  return Cast(Reshape(drawn, {-1, 1}), DType::kFloat32);
}

}  // namespace muster

#endif  // COMMON_LEARN_NN_IMAGE_RESAMPLING_H_
