#include "ps/log/log_lock.h"

#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

TEST(LogLockTest, OneHolderHasTheFolder) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/log_lock");
  std::filesystem::remove_all(folder);
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<LogLock> lock,
                         LogLock::Take(folder, absl::ZeroDuration()));
    EXPECT_THAT(LogLock::Take(folder, absl::Milliseconds(50)),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("another process has locked")));
  }
  EXPECT_OK(LogLock::Take(folder, absl::ZeroDuration()).status());
}

}  // namespace
}  // namespace muster
