#include "common/core/base/random.h"

#include <random>

#include "common/core/base/philox.h"

namespace muster {

std::array<uint32_t, 4> Philox(uint64_t key, uint64_t position,
                               uint64_t position_high) {
  const PhiloxWords words = PhiloxAt(key, position, position_high);
  return {words.word[0], words.word[1], words.word[2], words.word[3]};
}

uint64_t FoldIn(uint64_t key, uint64_t data) { return FoldInWord(key, data); }

uint64_t FoldIn(uint64_t key, absl::string_view data) {
  uint64_t folded = FoldIn(key, data.size());
  for (const char c : data) {
    folded = FoldIn(folded, static_cast<unsigned char>(c));
  }
  return folded;
}

std::array<float, 2> UnitNormals(uint32_t bits0, uint32_t bits1) {
  const NormalPair pair = NormalsOf(bits0, bits1);
  return {pair.first, pair.second};
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
