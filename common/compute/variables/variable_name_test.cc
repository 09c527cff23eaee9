#include "common/compute/variables/variable_name.h"

#include "absl/status/status.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

TEST(VariableNameTest, NoPartIsEmpty) {
  for (const char* const name : {"", "a", "a/b", "a/b/c", ".", "a.b"}) {
    EXPECT_OK(CheckVariableName(name)) << name;
  }
  for (const char* const name : {"/", "/x", "a//b", "a/", "a///b/"}) {
    EXPECT_THAT(CheckVariableName(name),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(name)));
  }
}

}  // namespace
}  // namespace muster
