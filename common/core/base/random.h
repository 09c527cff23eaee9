#ifndef COMMON_CORE_BASE_RANDOM_H_
#define COMMON_CORE_BASE_RANDOM_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/base/philox.h"

// Random numbers that are a pure function of a key and a position.
//
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011): the n-th number of a stream costs the same as the first. A shard
// therefore draws only its own slice, a retried step draws the same numbers as
// the first attempt, and results do not depend on how work was divided.

namespace muster {

// Returns four independent 32-bit words at `position` of the stream `key`.
std::array<uint32_t, 4> Philox(uint64_t key, uint64_t position,
                               uint64_t position_high = 0);

// Derives a new key. Streams derived with different data are independent. Use
// it for (seed, layer), (seed, epoch), (seed, worker).
uint64_t FoldIn(uint64_t key, uint64_t data);
uint64_t FoldIn(uint64_t key, absl::string_view data);

// Uniform in [0, 1), with 24 random bits.
inline float UnitFloat(uint32_t bits) { return UniformOf(bits); }

// Two independent standard normal numbers (Box-Muller).
std::array<float, 2> UnitNormals(uint32_t bits0, uint32_t bits1);

// Reads one stream in order. Cheap to copy; a copy continues at the same
// position, and position() restores it. Not thread-safe.
class RandomStream {
 public:
  explicit RandomStream(uint64_t key, uint64_t position = 0)
      : key_(key), position_(position) {}

  uint64_t Next64();
  // Uniform in [0, bound) without modulo bias. `bound` > 0.
  uint64_t Below(uint64_t bound);

  uint64_t key() const { return key_; }
  uint64_t position() const { return position_; }

 private:
  uint64_t key_;
  uint64_t position_;
};

// Returns a number from the operating system. For incarnations and job ids,
// never for training.
uint64_t RandomIdentity();

// Draws the numbers `first` to first + numbers.size() - 1 of the stream `key`:
// number n is UnitFloat() of word n % 4 of Philox(key, n / 4), see random.h.
// All processors draw the same bits. Processors with vector instructions are
// several times as fast as drawing number by number.
void FillUniform(uint64_t key, uint64_t first, absl::Span<float> numbers);

}  // namespace muster

#endif  // COMMON_CORE_BASE_RANDOM_H_
