#ifndef COMMON_IO_IMAGE_TESTING_TEST_IMAGES_H_
#define COMMON_IO_IMAGE_TESTING_TEST_IMAGES_H_

#include <cstdint>

#include "common/io/image/image.h"

namespace muster {

// Returns an image of slopes and a few edges, which compression changes by a
// few grey levels. The same arguments return the same image.
inline Image TestImage(int64_t height, int64_t width, int channels,
                       int64_t phase = 0) {
  Image image = {.height = height, .width = width, .channels = channels};
  image.pixels.reserve(static_cast<size_t>(height * width * channels));
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        const int64_t slope = (2 * x + 3 * y + 50 * c + 7 * phase) % 400;
        const int64_t value = slope < 200 ? 20 + slope : 420 - slope;
        image.pixels.push_back(static_cast<uint8_t>(value));
      }
    }
  }
  return image;
}

}  // namespace muster

#endif  // COMMON_IO_IMAGE_TESTING_TEST_IMAGES_H_
