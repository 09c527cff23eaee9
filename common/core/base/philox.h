#ifndef COMMON_CORE_BASE_PHILOX_H_
#define COMMON_CORE_BASE_PHILOX_H_

#include "common/core/base/host_device.h"

// The arithmetic of random.h, for the host and for device kernels: both draw
// the same bits.
namespace muster {

struct PhiloxWords {
  uint32_t word[4];
};

struct NormalPair {
  float first;
  float second;
};

// Philox() of random.h.
MUSTER_HOST_DEVICE inline PhiloxWords PhiloxAt(uint64_t key, uint64_t position,
                                               uint64_t position_high) {
  constexpr int kRounds = 10;
  constexpr uint64_t kMultiplier0 = 0xD2511F53;
  constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9;
  constexpr uint32_t kWeyl1 = 0xBB67AE85;
  uint32_t key0 = static_cast<uint32_t>(key);
  uint32_t key1 = static_cast<uint32_t>(key >> 32);
  PhiloxWords c = {{static_cast<uint32_t>(position),
                    static_cast<uint32_t>(position >> 32),
                    static_cast<uint32_t>(position_high),
                    static_cast<uint32_t>(position_high >> 32)}};
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kMultiplier0 * c.word[0];
    const uint64_t product1 = kMultiplier1 * c.word[2];
    c = {{static_cast<uint32_t>(product1 >> 32) ^ c.word[1] ^ key0,
          static_cast<uint32_t>(product1),
          static_cast<uint32_t>(product0 >> 32) ^ c.word[3] ^ key1,
          static_cast<uint32_t>(product0)}};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return c;
}

// FoldIn() of random.h. The high half of the position separates derived keys
// from drawn numbers.
MUSTER_HOST_DEVICE inline uint64_t FoldInWord(uint64_t key, uint64_t data) {
  const PhiloxWords words = PhiloxAt(key, data, ~uint64_t{0});
  return uint64_t{words.word[1]} << 32 | words.word[0];
}

// UnitFloat() of random.h.
MUSTER_HOST_DEVICE inline float UniformOf(uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1.0p-24f;
}

// UnitNormals() of random.h.
MUSTER_HOST_DEVICE inline NormalPair NormalsOf(uint32_t bits0, uint32_t bits1) {
  // 1 - u is in (0, 1], so the logarithm is finite.
  const float radius = sqrtf(-2.0f * logf(1.0f - UniformOf(bits0)));
  const float angle = 6.28318530717958647692f * UniformOf(bits1);
  return {radius * cosf(angle), radius * sinf(angle)};
}

}  // namespace muster

#endif  // COMMON_CORE_BASE_PHILOX_H_
