#ifndef COMMON_CORE_BASE_FINGERPRINT_H_
#define COMMON_CORE_BASE_FINGERPRINT_H_

#include <cstdint>

#include "absl/strings/string_view.h"

// Hashes of bytes whose values never change, so that they may be stored: the
// buckets of categories in trained models depend on them.
namespace muster {

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

#endif  // COMMON_CORE_BASE_FINGERPRINT_H_
