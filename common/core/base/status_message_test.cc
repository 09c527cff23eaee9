#include "common/core/base/status_message.h"

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(StatusMessageTest, KeepsTheCodeAndThePayloads) {
  absl::Status status = absl::AbortedError("a");
  status.SetPayload("one", absl::Cord("1"));
  status.SetPayload("two", absl::Cord("2"));
  absl::Status wanted = absl::AbortedError("b");
  wanted.SetPayload("one", absl::Cord("1"));
  wanted.SetPayload("two", absl::Cord("2"));
  EXPECT_EQ(WithMessage(status, "b"), wanted);
  EXPECT_OK(WithMessage(absl::OkStatus(), "b"));
}

}  // namespace
}  // namespace muster
