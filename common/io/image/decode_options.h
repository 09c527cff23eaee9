#ifndef COMMON_IO_IMAGE_DECODE_OPTIONS_H_
#define COMMON_IO_IMAGE_DECODE_OPTIONS_H_

#include <cstdint>

namespace muster {

struct DecodeImageOptions {
  // 1 grey, 3 red green blue, 4 with alpha, which is 255 where the file has
  // none; 2 grey with alpha for PNG only. 0: as the file has it.
  int channels = 3;
  // A larger image is refused before memory is taken for it.
  int64_t pixel_count_max = 100'000'000;
  // Other than 0: a JPEG may be decoded at a half, a quarter or an eighth of
  // its size, for a fraction of the work, as long as it stays at least this
  // large. Its pixels are averages then.
  int64_t height_min = 0;
  int64_t width_min = 0;
};

}  // namespace muster

#endif  // COMMON_IO_IMAGE_DECODE_OPTIONS_H_
