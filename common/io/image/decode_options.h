#ifndef COMMON_IO_IMAGE_DECODE_OPTIONS_H_
#define COMMON_IO_IMAGE_DECODE_OPTIONS_H_

#include <cstdint>

namespace muster {

struct DecodeImageOptions {
  // 1: grayscale. 3: RGB. 4: RGBA, where alpha is 255 if the file has none. 2:
  // grayscale with alpha, for PNG only. 0: as in the file.
  int channels = 3;
  // A larger image is rejected before memory is allocated for it.
  int64_t pixel_count_max = 100'000'000;
  // Other than 0: a JPEG may be decoded at a half, a quarter or an eighth of
  // its size, as long as it stays at least this large. This takes a fraction of
  // the time, and the pixels are averages.
  int64_t height_min = 0;
  int64_t width_min = 0;
};

}  // namespace muster

#endif  // COMMON_IO_IMAGE_DECODE_OPTIONS_H_
