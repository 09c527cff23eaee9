#ifndef COMMON_IO_EVENTS_PNG_H_
#define COMMON_IO_EVENTS_PNG_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"

namespace muster {

// Encodes a PNG file of 8-bit pixels in row-major order: `channel_count` is 1
// (grayscale), 3 (RGB) or 4 (RGBA), and `pixels` has height * width *
// channel_count bytes. For small images: rows are compressed without filters.
std::string EncodePng(int width, int height, int channel_count,
                      absl::Span<const uint8_t> pixels);

}  // namespace muster

#endif  // COMMON_IO_EVENTS_PNG_H_
