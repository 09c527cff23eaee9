#ifndef COMMON_DATASET_IMAGES_IMAGE_OPTIONS_H_
#define COMMON_DATASET_IMAGES_IMAGE_OPTIONS_H_

#include <cstdint>

#include "common/dataset/corrupt_input.h"
#include "common/io/image/resize.h"

namespace muster {

struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;
};

enum class ColorMode { kGrayscale = 1, kRgb = 3, kRgba = 4 };  // Channels.

// How the files of images become tensors.
struct ImageOptions {
  ImageSize image_size = {256, 256};
  Interpolation interpolation = Interpolation::kBilinear;
  ColorMode color_mode = ColorMode::kRgb;
  // Cuts off what does not fit the form of image_size, alike on both sides, in
  // place of distorting the image.
  bool crop_to_aspect_ratio = false;
  // Multiplies the pixels, which are 0 to 255: 1.0 / 255 for 0 to 1.
  double scale = 1;
  // Decodes large JPEG files at a half, a quarter or an eighth of their size
  // where that is still at least image_size. Less work, and pixels that are
  // averages: better ones than those of bilinear interpolation alone, but not
  // those of tf.image.resize().
  bool fast_downscale = false;
  CorruptInput corrupt_input = CorruptInput::kFail;
  // Images decoded at the same time, each on a thread of its own; 1: on the
  // thread that asks for the next one.
  int thread_count = 2;
};

}  // namespace muster

#endif  // COMMON_DATASET_IMAGES_IMAGE_OPTIONS_H_
