#ifndef COMMON_COMPUTE_OPS_IMAGE_OPS_H_
#define COMMON_COMPUTE_OPS_IMAGE_OPS_H_

#include <cstdint>

#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/resize.h"

// Resampling of batches of images [batch, height, width, channels].
namespace muster {

// Resizes to `height` x `width`. Maps the centres of pixels: pixel `i` of n is
// sampled at (i + 0.5) * (extent / n) - 0.5. Bilinear images have a floating
// dtype, nearest ones any number dtype.
//
// Equivalent to: tf.image.resize with antialias=False.
Value ResizeImage(Value images, int64_t height, int64_t width,
                  Interpolation interpolation = Interpolation::kBilinear);

// The values beyond the edges of an image.
enum class FillMode {
  kConstant,  // The fill value.
  kNearest,   // The pixel at the edge: aaaa|abcd|dddd.
  kReflect,   // dcba|abcd|dcba
  kWrap,      // abcd|abcd|abcd
};

struct ImageTransformOptions {
  Interpolation interpolation = Interpolation::kBilinear;
  FillMode fill_mode = FillMode::kConstant;
  double fill_value = 0;
};

// Applies a projection to each image. `transforms` is float32 [batch, 8]: with
// a row {a0, a1, a2, b0, b1, b2, c0, c1}, pixel (x, y) of the result is sampled
// at ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k) with k = c0 x + c1 y + 1.
// No gradient flows to `transforms`.
//
// Equivalent to: tf.raw_ops.ImageProjectiveTransformV3.
Value ImageTransform(Value images, Value transforms,
                     ImageTransformOptions options = {});

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_IMAGE_OPS_H_
