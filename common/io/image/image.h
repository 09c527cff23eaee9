#ifndef COMMON_IO_IMAGE_IMAGE_H_
#define COMMON_IO_IMAGE_IMAGE_H_

#include <cstdint>
#include <vector>

namespace muster {

// Rows from top to bottom, in each its pixels from left to right, in each its
// channels: grey, or red green blue, and alpha last where there is one.
struct Image {
  int64_t height = 0;
  int64_t width = 0;
  int channels = 0;  // 1 to 4.
  std::vector<uint8_t> pixels;
};

}  // namespace muster

#endif  // COMMON_IO_IMAGE_IMAGE_H_
