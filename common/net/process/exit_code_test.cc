#include "common/net/process/exit_code.h"

#include <string>

#include "absl/strings/cord.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(ExitCodeTest, AnErrorWithoutAnExitCodeIsAFailure) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), ExitCode::kOk);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("x")), ExitCode::kFailure);
  EXPECT_EQ(
      ExitCodeOf(WithExitCode(absl::AbortedError("x"), ExitCode::kRestartMe)),
      ExitCode::kRestartMe);
  EXPECT_EQ(ExitCodeOf(WithExitCode(absl::OkStatus(), ExitCode::kUsage)),
            ExitCode::kOk);
}

TEST(ExitCodeTest, OtherTasksRestartAfterASignalEndsTheCoordinator) {
  EXPECT_EQ(ExitCodeOfOthers(ExitCode::kTerminated), ExitCode::kRestartMe);
  EXPECT_EQ(ExitCodeOfOthers(ExitCode::kInterrupted), ExitCode::kRestartMe);
  EXPECT_EQ(ExitCodeOfOthers(ExitCode::kRestartMe), ExitCode::kRestartMe);
  for (ExitCode code : {ExitCode::kOk, ExitCode::kFailure, ExitCode::kUsage}) {
    EXPECT_EQ(ExitCodeOfOthers(code), code);
  }
}

TEST(ExitCodeTest, JobEndStatusHasTheReason) {
  EXPECT_TRUE(JobEndStatus(0, "ignored").ok());
  const absl::Status usage = JobEndStatus(2, "ps 0 is elsewhere");
  EXPECT_EQ(ExitCodeOf(usage), ExitCode::kUsage);
  EXPECT_NE(usage.message().find("ps 0 is elsewhere"), std::string::npos);
  EXPECT_EQ(ExitCodeOf(JobEndStatus(77, "")), ExitCode::kFailure);
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
