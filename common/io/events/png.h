#ifndef COMMON_IO_EVENTS_PNG_H_
#define COMMON_IO_EVENTS_PNG_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"

namespace muster {

// A PNG file of 8-bit pixels by rows: `channel_count` is 1 (grey), 3 (RGB) or
// 4 (RGBA), and `pixels` has height * width * channel_count bytes. Written for
// small pictures: rows are compressed as they are, without filters.
std::string EncodePng(int width, int height, int channel_count,
                      absl::Span<const uint8_t> pixels);

}  // namespace muster

#endif  // COMMON_IO_EVENTS_PNG_H_
