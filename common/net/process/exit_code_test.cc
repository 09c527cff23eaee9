#include "common/net/process/exit_code.h"

#include "absl/strings/cord.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(ExitCodeTest, AnErrorIsAFailureUnlessItSaysOtherwise) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), ExitCode::kOk);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("x")), ExitCode::kFailure);
  EXPECT_EQ(
      ExitCodeOf(WithExitCode(absl::AbortedError("x"), ExitCode::kRestartMe)),
      ExitCode::kRestartMe);
  EXPECT_EQ(ExitCodeOf(WithExitCode(absl::OkStatus(), ExitCode::kUsage)),
            ExitCode::kOk);
}

TEST(ExitCodeTest, ADamagedCodeIsAFailure) {
  absl::Status status = absl::InternalError("x");
  for (const char* text : {"", "0", "77", "two"}) {
    status.SetPayload("type.muster/ExitCode", absl::Cord(text));
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kFailure) << text;
  }
}

}  // namespace
}  // namespace muster
