#ifndef COMMON_IO_CHECKPOINT_TABLE_FORMAT_H_
#define COMMON_IO_CHECKPOINT_TABLE_FORMAT_H_

#include <cstddef>
#include <cstdint>

namespace muster {

// A table is: data blocks, an empty metaindex block, an index block with the
// place of each data block, a footer with the places of the last two.

// Follows every block: how it is compressed, and the masked CRC-32C of the
// block and that byte.
inline constexpr size_t kTableTrailerBytes = 5;
inline constexpr char kTableUncompressed = 0;

inline constexpr size_t kTableFooterBytes = 48;
inline constexpr uint64_t kTableMagic = 0xdb4775248b80fb57;

// A data block is closed when it has this many.
inline constexpr size_t kTableBlockBytes = 256 << 10;

}  // namespace muster

#endif  // COMMON_IO_CHECKPOINT_TABLE_FORMAT_H_
