#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/core/base/random.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(FillUniformTest, DrawsTheNumbersOfTheStream) {
  constexpr uint64_t kKey = 0x123456789abcdef;
  // Begins at each of the four numbers of a position, and crosses 2^32
  // positions.
  for (const uint64_t first : {0, 1, 2, 3, 4, 61}) {
    for (const uint64_t base : {uint64_t{0}, (uint64_t{1} << 34) - 64}) {
      for (const size_t count : {0, 1, 2, 5, 63, 64, 65, 200}) {
        std::vector<float> numbers(count);
        FillUniform(kKey, base + first, absl::MakeSpan(numbers));
        for (size_t i = 0; i < count; ++i) {
          const uint64_t number = base + first + i;
          ASSERT_EQ(numbers[i], UnitFloat(Philox(kKey, number / 4)[number % 4]))
              << "number " << number << ", the " << i << "th of " << count;
        }
      }
    }
  }
}

}  // namespace
}  // namespace muster
