#ifndef COMMON_IO_IMAGE_IMAGE_H_
#define COMMON_IO_IMAGE_IMAGE_H_

#include <cstdint>
#include <vector>

namespace muster {

// Row-major, channels last: grayscale or RGB, followed by alpha if present.
struct Image {
  int64_t height = 0;
  int64_t width = 0;
  int channels = 0;  // 1 to 4.
  std::vector<uint8_t> pixels;
};

}  // namespace muster

#endif  // COMMON_IO_IMAGE_IMAGE_H_
