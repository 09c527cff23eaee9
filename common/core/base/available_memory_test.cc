#include "common/core/base/available_memory.h"

#include <sys/resource.h>

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(AvailableMemoryTest, TheLimitOfAddressSpaceApplies) {
  const size_t before = AvailableMemoryBytes();
  EXPECT_GT(before, 64u << 20);
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &limit), 0);
  const rlimit lower = {before / 2, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &lower), 0);
  EXPECT_EQ(AvailableMemoryBytes(), before / 2);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

}  // namespace
}  // namespace muster
