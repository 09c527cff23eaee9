#ifndef COMMON_IO_KERAS_DEFLATE_EXPANSION_H_
#define COMMON_IO_KERAS_DEFLATE_EXPANSION_H_

#include <cstdint>

namespace muster {

// Compressed data that claims to expand by more is damaged: deflate cannot
// exceed 1032.
inline constexpr uint64_t kDeflateExpansionMax = 1100;

}  // namespace muster

#endif  // COMMON_IO_KERAS_DEFLATE_EXPANSION_H_
