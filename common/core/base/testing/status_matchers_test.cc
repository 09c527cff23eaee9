#include "common/core/base/testing/status_matchers.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest-spi.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::PrintToString;

// A type that GoogleTest can print only as bytes.
struct Large {
  char bytes[11680] = {};
};

TEST(StatusMatchersTest, AFailurePrintsTheStatusAndNotTheObject) {
  testing::TestPartResultArray failures;
  {
    const testing::ScopedFakeTestPartResultReporter reporter(&failures);
    EXPECT_OK(absl::StatusOr<Large>(absl::NotFoundError("no such file")));
    EXPECT_THAT(absl::StatusOr<Large>(Large()),
                StatusIs(absl::StatusCode::kNotFound));
  }
  ASSERT_EQ(failures.size(), 2);
  for (int i = 0; i < 2; ++i) {
    const std::string message = failures.GetTestPartResult(i).message();
    EXPECT_LT(message.size(), 500);
    EXPECT_THAT(message, Not(HasSubstr("byte object")));
  }
  EXPECT_THAT(failures.GetTestPartResult(0).message(),
              HasSubstr("NOT_FOUND: no such file"));
}

TEST(StatusMatchersTest, ValuesWithATextArePrinted) {
  EXPECT_EQ(PrintToString(absl::StatusOr<int>(7)), "7");
  EXPECT_EQ(PrintToString(absl::StatusOr<std::vector<int>>({1, 2})),
            "{ 1, 2 }");
  EXPECT_EQ(PrintToString(absl::StatusOr<Large>(Large())), "OK");
}

}  // namespace
}  // namespace muster
