#ifndef COMMON_IO_CHECKPOINT_TABLE_FORMAT_H_
#define COMMON_IO_CHECKPOINT_TABLE_FORMAT_H_

#include <cstddef>
#include <cstdint>

namespace muster {

// A table consists of data blocks, an empty metaindex block, an index block
// with the position of each data block, and a footer with the positions of the
// last two. Equivalent to: leveldb's table format.

// Follows every block: the compression type, and the masked CRC-32C of the
// block and that byte.
inline constexpr size_t kTableTrailerBytes = 5;
inline constexpr char kTableUncompressed = 0;

inline constexpr size_t kTableFooterBytes = 48;
inline constexpr uint64_t kTableMagic = 0xdb4775248b80fb57;

// A data block ends when it has this size.
inline constexpr size_t kTableBlockBytes = 256 << 10;

}  // namespace muster

#endif  // COMMON_IO_CHECKPOINT_TABLE_FORMAT_H_
