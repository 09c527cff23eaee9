#include <sys/resource.h>

#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/memory_limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

// More bytes than any process maps, even under ThreadSanitizer, which reserves
// terabytes.
constexpr size_t kHuge = size_t{1} << 46;

TEST(AddressSpaceTest, WithoutALimitEverythingIsAllowed) {
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &limit), 0);
  if (limit.rlim_cur != RLIM_INFINITY) GTEST_SKIP() << "there is a limit";
  EXPECT_OK(CheckAddressSpace(size_t{1} << 62, "it"));
}

TEST(AddressSpaceTest, ALimitIsNamedOnlyWhenItIsReached) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit limit = {kHuge, before.rlim_max};
  if (setrlimit(RLIMIT_AS, &limit) != 0) GTEST_SKIP() << "there is a limit";
  EXPECT_OK(CheckAddressSpace(1 << 20, "it"));
  EXPECT_THAT(CheckAddressSpace(kHuge, "oneDNN"),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       testing::HasSubstr(absl::StrCat(
                           "limited to ", kHuge / 1024, " KiB (ulimit -v)"))));
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
}

}  // namespace
}  // namespace muster
