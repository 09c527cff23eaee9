#ifndef COMMON_CORE_BASE_HASHES_H_
#define COMMON_CORE_BASE_HASHES_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

// Hashes of bytes whose values never change, so that they may be stored: the
// buckets of categories in trained models depend on them.

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

// FarmHash's Fingerprint64. Anyone can choose bytes with equal fingerprints.
//
// Equivalent to: the hash of tf.strings.to_hash_bucket_fast.
uint64_t Fingerprint64(absl::string_view bytes);

// Returns the fingerprint of two fingerprints. Their order matters.
//
// Equivalent to: FingerprintCat64 of TensorFlow, which crosses categories.
uint64_t CombinedFingerprint(uint64_t first, uint64_t second);

// A key of SipHash.
struct SipHashKey {
  uint64_t low = 0;
  uint64_t high = 0;
};

// SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF",
// 2012). A party without the key cannot choose bytes whose hashes collide.
//
// Equivalent to: the hash of tf.strings.to_hash_bucket_strong.
uint64_t SipHash(const SipHashKey& key, absl::string_view bytes);

}  // namespace muster

#endif  // COMMON_CORE_BASE_HASHES_H_
