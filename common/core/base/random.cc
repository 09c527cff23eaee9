#include "common/core/base/random.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>

#include "absl/base/attributes.h"
#include "absl/types/span.h"
#include "common/core/base/multiversion.h"
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

namespace {

// Number of positions that vector instructions compute together.
constexpr int64_t kBlock = 16;

// Philox() of kBlock consecutive positions, word by word: the compiler
// vectorizes the loops over positions.
struct Rounds {
  uint32_t words[4][kBlock];

  ABSL_ATTRIBUTE_ALWAYS_INLINE void Run(uint64_t key, uint64_t position) {
    for (int64_t i = 0; i < kBlock; ++i) {
      words[0][i] = static_cast<uint32_t>(position + i);
      words[1][i] = static_cast<uint32_t>((position + i) >> 32);
      words[2][i] = 0;
      words[3][i] = 0;
    }
    uint32_t key0 = static_cast<uint32_t>(key);
    uint32_t key1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      for (int64_t i = 0; i < kBlock; ++i) {
        const uint64_t product0 = uint64_t{0xD2511F53} * words[0][i];
        const uint64_t product1 = uint64_t{0xCD9E8D57} * words[2][i];
        words[0][i] =
            static_cast<uint32_t>(product1 >> 32) ^ words[1][i] ^ key0;
        words[1][i] = static_cast<uint32_t>(product1);
        words[2][i] =
            static_cast<uint32_t>(product0 >> 32) ^ words[3][i] ^ key1;
        words[3][i] = static_cast<uint32_t>(product0);
      }
      key0 += 0x9E3779B9;
      key1 += 0xBB67AE85;
    }
  }
};

// Draws kBlock * 4 numbers for each of `count` blocks, beginning at `position`.
MUSTER_MULTIVERSION void FillUniformBlocks(uint64_t key, uint64_t position,
                                           int64_t count, float* numbers) {
  Rounds rounds;
  for (int64_t block = 0; block < count; ++block) {
    rounds.Run(key, position + block * kBlock);
    float* const out = numbers + block * kBlock * 4;
    for (int64_t i = 0; i < kBlock; ++i) {
      for (int word = 0; word < 4; ++word) {
        // Small enough for a signed conversion, which all machines vectorize.
        const auto bits = static_cast<int32_t>(rounds.words[word][i] >> 8);
        out[i * 4 + word] = static_cast<float>(bits) * 0x1.0p-24f;
      }
    }
  }
}

// Draws the numbers that do not fill a position or a block.
void FillOneByOne(uint64_t key, uint64_t first, absl::Span<float> numbers) {
  std::array<uint32_t, 4> words = {};
  for (size_t i = 0; i < numbers.size(); ++i) {
    const uint64_t number = first + i;
    if (i == 0 || number % 4 == 0) words = Philox(key, number / 4);
    numbers[i] = UnitFloat(words[number % 4]);
  }
}

}  // namespace

void FillUniform(uint64_t key, uint64_t first, absl::Span<float> numbers) {
  const absl::Span<float> head =
      numbers.first(std::min<size_t>((4 - first % 4) % 4, numbers.size()));
  FillOneByOne(key, first, head);
  first += head.size();
  numbers.remove_prefix(head.size());
  const size_t blocks = numbers.size() / (kBlock * 4);
  FillUniformBlocks(key, first / 4, static_cast<int64_t>(blocks),
                    numbers.data());
  const size_t done = blocks * kBlock * 4;
  FillOneByOne(key, first + done, numbers.subspan(done));
}

}  // namespace muster
