#ifndef COMMON_CORE_BASE_CRC32C_H_
#define COMMON_CORE_BASE_CRC32C_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace muster {

// CRC-32C (Castagnoli), the checksum of TensorFlow's checkpoints, event files
// and TFRecords, of iSCSI and of ext4. Uses the processor's instruction if
// there is one.

// Returns the checksum of A followed by `data`, where `crc` is the checksum of
// A; 0 for an empty A.
uint32_t ExtendCrc32c(uint32_t crc, const void* data, size_t size_bytes);

inline uint32_t Crc32c(absl::string_view data) {
  return ExtendCrc32c(0, data.data(), data.size());
}

// The form in which checksums are stored. Unmasked, the checksum of bytes that
// contain their own checksum would be a constant.
inline uint32_t MaskCrc32c(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

namespace internal {

// Does not use the processor's instruction; for tests.
uint32_t ExtendCrc32cByTable(uint32_t crc, const void* data, size_t size_bytes);

}  // namespace internal
}  // namespace muster

#endif  // COMMON_CORE_BASE_CRC32C_H_
