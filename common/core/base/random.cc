#include "common/core/base/random.h"

#include <cmath>
#include <random>

namespace muster {
namespace {

constexpr uint32_t kMultiplier0 = 0xD2511F53;
constexpr uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9;
constexpr uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

}  // namespace

std::array<uint32_t, 4> Philox(uint64_t key, uint64_t position,
                               uint64_t position_high) {
  uint32_t key0 = static_cast<uint32_t>(key);
  uint32_t key1 = static_cast<uint32_t>(key >> 32);
  std::array<uint32_t, 4> counter = {
      static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32),
      static_cast<uint32_t>(position_high),
      static_cast<uint32_t>(position_high >> 32)};
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = uint64_t{kMultiplier0} * counter[0];
    const uint64_t product1 = uint64_t{kMultiplier1} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0,
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1,
               static_cast<uint32_t>(product0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return counter;
}

uint64_t FoldIn(uint64_t key, uint64_t data) {
  // The high half of the position separates derived keys from drawn numbers.
  const std::array<uint32_t, 4> words = Philox(key, data, ~uint64_t{0});
  return uint64_t{words[1]} << 32 | words[0];
}

uint64_t FoldIn(uint64_t key, absl::string_view data) {
  uint64_t folded = FoldIn(key, data.size());
  for (const char c : data) {
    folded = FoldIn(folded, static_cast<unsigned char>(c));
  }
  return folded;
}

std::array<float, 2> UnitNormals(uint32_t bits0, uint32_t bits1) {
  // 1 - u is in (0, 1], so the logarithm is finite.
  const float radius = std::sqrt(-2.0f * std::log(1.0f - UnitFloat(bits0)));
  const float angle = 6.28318530717958647692f * UnitFloat(bits1);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

uint64_t RandomStream::Next64() {
  const std::array<uint32_t, 4> words = Philox(key_, position_++);
  return uint64_t{words[1]} << 32 | words[0];
}

uint64_t RandomStream::Below(uint64_t bound) {
  // Values below `rejected` would make some remainders more likely than others.
  const uint64_t rejected = -bound % bound;
  while (true) {
    const uint64_t value = Next64();
    if (value >= rejected) return value % bound;
  }
}

uint64_t RandomIdentity() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace muster
