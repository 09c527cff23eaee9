#include "common/learn/strategy/chief_result.h"

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/process/exit_code.h"
#include "common/net/rpc/status_detail.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/rpc.pb.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

TEST(ChiefResultTest, BytesComeBack) {
  const std::string bytes("\0e\xff", 3);
  EXPECT_THAT(DecodeResult(EncodeResult(bytes)), IsOkAndHolds(bytes));
  EXPECT_THAT(DecodeResult(EncodeResult(std::string())),
              IsOkAndHolds(std::string()));
}

TEST(ChiefResultTest, AnErrorKeepsItsPayloads) {
  proto::TaskFailure failure;
  failure.set_task_type("ps");
  failure.set_task_index(3);
  const absl::Status error = WithExitCode(
      WithTaskFailure(absl::UnavailableError("ps 3 is lost"), failure),
      ExitCode::kRestartMe);
  const absl::Status status = DecodeResult(EncodeResult(error)).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                               HasSubstr("ps 3 is lost")));
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kRestartMe);
  ASSERT_TRUE(GetTaskFailure(status).has_value());
  EXPECT_EQ(GetTaskFailure(status)->task_index(), 3);
}

TEST(ChiefResultTest, RefusesDamagedBytes) {
  for (const char* const encoded : {"", "x", "e\xff"}) {
    EXPECT_THAT(DecodeResult(encoded),
                StatusIs(absl::StatusCode::kInternal, HasSubstr("is damaged")));
  }
}

}  // namespace
}  // namespace muster
