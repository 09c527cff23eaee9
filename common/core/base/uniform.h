#ifndef COMMON_CORE_BASE_UNIFORM_H_
#define COMMON_CORE_BASE_UNIFORM_H_

#include <cstdint>

#include "absl/types/span.h"

namespace muster {

// Draws the numbers `first` to first + numbers.size() - 1 of the stream `key`:
// number n is UnitFloat() of word n % 4 of Philox(key, n / 4), see random.h.
// All processors draw the same bits. Processors with vector instructions are
// several times as fast as drawing number by number.
void FillUniform(uint64_t key, uint64_t first, absl::Span<float> numbers);

}  // namespace muster

#endif  // COMMON_CORE_BASE_UNIFORM_H_
