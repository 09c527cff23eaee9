#include "coordinator/closure_ids.h"

#include <cstdint>
#include <set>
#include <vector>

#include "common/core/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(ClosureIdsTest, BehavesLikeAStdSet) {
  constexpr uint64_t kIds = 60;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    RandomStream random(seed);
    ClosureIds a, b;
    std::set<uint64_t> in_a, in_b;
    for (int i = 0; i < 80; ++i) {
      const uint64_t id = 1 + random.Below(kIds);
      if (random.Below(2) == 0) {
        a.Add(id);
        in_a.insert(id);
      } else {
        b.Add(id);
        in_b.insert(id);
      }
    }
    std::vector<uint64_t> rest;
    for (uint64_t id = 0; id <= kIds + 1; ++id) {
      ASSERT_EQ(a.Contains(id), in_a.contains(id)) << "seed " << seed;
      if (in_a.contains(id) && !in_b.contains(id)) rest.push_back(id);
    }
    ASSERT_EQ(a.size(), static_cast<int64_t>(in_a.size())) << "seed " << seed;
    ASSERT_EQ(a.Minus(b).First(1000), rest) << "seed " << seed;
    ASSERT_EQ(a.Minus(b).size(), static_cast<int64_t>(rest.size()));
    ClosureIds again;
    for (const uint64_t id : in_a) again.Add(id);
    ASSERT_EQ(a, again) << "seed " << seed;
  }
}

}  // namespace
}  // namespace muster
