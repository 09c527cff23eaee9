#ifndef COMMON_LEARN_NN_IMAGE_COLOR_H_
#define COMMON_LEARN_NN_IMAGE_COLOR_H_

#include <array>
#include <cstdint>

#include "common/compute/graph/graph_builder.h"
#include "common/learn/nn/image/augmentation.h"

// Functions of images [batch, height, width, channels] of a floating dtype.
// Other operands broadcast to the images: [batch, 1, 1, 1] is one number for
// each. They compute what the layers of the same names compute from the numbers
// that they draw (random_color.h, random_position.h).
//
// Source: keras.layers, and tf.image.rgb_to_hsv for colors.
namespace muster::internal {

// Maps the range `from` linearly to `to`.
Value Rescale(Value images, const ValueRange& from, const ValueRange& to);
// Limits pixels to the range.
Value Clip(Value images, const ValueRange& range);

// images + delta, clipped.
Value AdjustBrightness(Value images, Value delta, const ValueRange& range);
// (images - mean) * factor + mean, clipped. The mean is that of each channel of
// an image.
Value AdjustContrast(Value images, Value factor, const ValueRange& range);
// Returns the brightness of RGB images, [batch, height, width, 1]; images of
// one channel as they are.
Value Grayscale(Value images);
// images + factor * (gray - images), clipped.
Value DegenerateColor(Value images, Value factor, const ValueRange& range);
// Keeps the `bits` highest bits of each pixel, as a byte.
Value Posterize(Value images, Value bits, const ValueRange& range);
// Adds `addition` as to a byte, and inverts pixels from `threshold` on.
Value Solarize(Value images, Value addition, Value threshold,
               const ValueRange& range);
// Multiplies the saturation of RGB images. As in Keras, it is limited to the
// range of pixels and not to 1, and so are not the colors.
Value AdjustSaturation(Value images, Value factor, const ValueRange& range);
// Adds `delta`, in [-0.5, 0.5], to the hue of RGB images, which is in [0, 1].
Value AdjustHue(Value images, Value delta, const ValueRange& range);
// Stretches each channel of an image to the whole range. Channels of a single
// value stay as they are.
Value StretchContrast(Value images, const ValueRange& range);
// Makes the values of each channel as frequent as each other, as far as a table
// of `bins` values can. As in Keras, values are counted in all images together.
// A channel whose values are in one bin stays as it is.
Value Equalize(Value images, int64_t bins, const ValueRange& range);
// smooth + factor * (images - smooth), clipped.
Value Sharpen(Value images, Value factor, const ValueRange& range);
// A Gaussian blur. The kernel has kernel_size[0] x kernel_size[1] elements,
// `sigma` is [2].
Value GaussianBlur(Value images, const std::array<int64_t, 2>& kernel_size,
                   Value sigma);

// A part of each image, in pixels: columns [left, right) and rows [top,
// bottom), each [batch, 1, 1, 1].
struct Box {
  Value left;
  Value right;
  Value top;
  Value bottom;
};
// Replaces the pixels in the box.
Value Erase(Value images, const Box& box, Value fill);

}  // namespace muster::internal

#endif  // COMMON_LEARN_NN_IMAGE_COLOR_H_
