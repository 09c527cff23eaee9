#include "common/net/collectives/peers/group_error.h"

#include "absl/strings/cord.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/rpc/status_detail.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/peer_group.pb.h"
#include "proto/rpc.pb.h"

namespace muster {
namespace {

TEST(GroupErrorTest, TheFirstKindCounts) {
  const absl::Status status =
      WithGroupErrorKind(WithGroupErrorKind(absl::UnavailableError("gone"),
                                            GroupErrorKind::kPeerLost),
                         GroupErrorKind::kPeerFailed);
  EXPECT_EQ(GroupErrorKindOf(status), GroupErrorKind::kPeerLost);
  EXPECT_EQ(GroupErrorKindOf(absl::UnavailableError("gone")), std::nullopt);
  EXPECT_OK(WithGroupErrorKind(absl::OkStatus(), GroupErrorKind::kPeerLost));
}

TEST(GroupErrorTest, AFailureTravelsWithAllThatItCarries) {
  proto::TaskFailure failure;
  failure.set_task_index(3);
  absl::Status status =
      WithTaskFailure(absl::DataLossError("a file is truncated"), failure);
  status.SetPayload("type.muster/ExitCode", absl::Cord("138"));
  const absl::Status arrived = DecodeFailure(EncodeFailure(status, true));
  EXPECT_EQ(arrived, status);
}

TEST(GroupErrorTest, WhatArrivesIsNeverOk) {
  EXPECT_THAT(DecodeFailure(proto::FailureNotice()),
              StatusIs(absl::StatusCode::kUnknown));
}

}  // namespace
}  // namespace muster
