#ifndef COMMON_DATASET_IMAGES_IMAGE_OPTIONS_H_
#define COMMON_DATASET_IMAGES_IMAGE_OPTIONS_H_

#include <cstdint>

#include "common/core/tensor/resize.h"
#include "common/dataset/corrupt_input.h"

namespace muster {

struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;
};

enum class ColorMode { kGrayscale = 1, kRgb = 3, kRgba = 4 };  // Channels.

// How image files are converted to tensors.
struct ImageOptions {
  ImageSize image_size = {256, 256};
  Interpolation interpolation = Interpolation::kBilinear;
  ColorMode color_mode = ColorMode::kRgb;
  // Crops the image, equally on both sides, to the aspect ratio of image_size
  // instead of distorting it.
  bool crop_to_aspect_ratio = false;
  // Multiplies the pixels, which are 0 to 255: 1.0 / 255 for 0 to 1.
  double scale = 1;
  // Decodes large JPEG files at a half, a quarter or an eighth of their size if
  // that is still at least image_size. This is faster, and the pixels are
  // averages: better than bilinear interpolation alone, but not equal to
  // tf.image.resize().
  bool fast_downscale = false;
  CorruptInput corrupt_input = CorruptInput::kFail;
  // Number of images decoded concurrently, each on its own thread; 1: on the
  // thread that requests the next one.
  int thread_count = 2;
};

}  // namespace muster

#endif  // COMMON_DATASET_IMAGES_IMAGE_OPTIONS_H_
