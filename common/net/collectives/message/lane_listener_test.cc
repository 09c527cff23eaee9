#include "common/net/collectives/message/lane_listener.h"

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/core/base/clock.h"
#include "common/core/base/status_matchers.h"
#include "common/net/collectives/message/payload_sink.h"
#include "common/net/collectives/message/waker.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

absl::Time In(absl::Duration duration) {
  return Clock::Real()->Now() + duration;
}
constexpr absl::Duration kLong = absl::Seconds(30);

absl::StatusOr<std::unique_ptr<LaneListener>> Listen(absl::string_view kind) {
  if (kind == "unix") return LaneListener::ListenUnix();
  return LaneListener::ListenTcp(kind);
}

class LaneListenerTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { ASSERT_OK_AND_ASSIGN(listener_, Listen(GetParam())); }

  std::unique_ptr<LaneListener> listener_;
};

// Sends `text` as an abort, the one frame that carries text.
void SendText(Lane& lane, const std::string& text) {
  OutgoingFrame frame;
  frame.header.kind = FrameKind::kAbort;
  frame.header.payload_bytes = text.size();
  frame.payload = reinterpret_cast<const uint8_t*>(text.data());
  ASSERT_THAT(lane.Send(frame), IsOkAndHolds(true));
}

std::string ReceiveText(Lane& lane) {
  const absl::Time deadline = In(kLong);
  TextSink sink;
  while (Clock::Real()->Now() < deadline) {
    const auto header = lane.NextFrame();
    if (!header.ok()) return header.status().ToString();
    if (*header == nullptr) continue;
    const auto is_received = lane.ReceivePayload(sink);
    if (!is_received.ok()) return is_received.status().ToString();
    if (*is_received) return sink.text();
  }
  return "nothing came";
}

TEST_P(LaneListenerTest, RanksThatShowTheTokenGetLanes) {
  std::vector<std::unique_ptr<Lane>> connected(3);
  std::vector<std::thread> threads;
  for (int rank = 1; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      auto lane = ConnectLane(listener_->address(), listener_->token(), rank, 7,
                              In(kLong));
      ASSERT_OK(lane);
      connected[rank] = *std::move(lane);
    });
  }
  auto accepted = listener_->Accept({1, 2}, 7, In(kLong));
  for (std::thread& thread : threads) thread.join();
  ASSERT_OK(accepted);
  LaneWaker waker;
  for (int rank = 1; rank < 3; ++rank) {
    Lane& near = *accepted->at(rank);
    EXPECT_TRUE(near.is_same_host());
    EXPECT_THAT(near.transport(), StartsWith("raw "));
    EXPECT_EQ(near.transport(), connected[rank]->transport());
    SendText(near, "to " + std::to_string(rank));
    EXPECT_EQ(ReceiveText(*connected[rank]), "to " + std::to_string(rank));
    SendText(*connected[rank], "from " + std::to_string(rank));
    EXPECT_EQ(ReceiveText(near), "from " + std::to_string(rank));
  }
}

TEST_P(LaneListenerTest, StrangersAreRefusedAndToldSo) {
  std::thread strangers([&] {
    EXPECT_THAT(ConnectLane(listener_->address(), std::string(32, '0'), 1, 7,
                            In(kLong)),
                StatusIs(absl::StatusCode::kPermissionDenied,
                         HasSubstr(listener_->address())));
    EXPECT_THAT(ConnectLane(listener_->address(), "", 1, 7, In(kLong)),
                StatusIs(absl::StatusCode::kPermissionDenied));
    EXPECT_THAT(
        ConnectLane(listener_->address(), listener_->token(), 1, 6, In(kLong)),
        StatusIs(absl::StatusCode::kFailedPrecondition,
                 HasSubstr("generation 7")));
    EXPECT_THAT(
        ConnectLane(listener_->address(), listener_->token(), 2, 7, In(kLong)),
        StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("rank 2")));
    EXPECT_OK(
        ConnectLane(listener_->address(), listener_->token(), 1, 7, In(kLong)));
  });
  EXPECT_OK(listener_->Accept({1}, 7, In(kLong)));
  strangers.join();
}

TEST_P(LaneListenerTest, RanksThatDoNotComeAreNamed) {
  EXPECT_THAT(
      listener_->Accept({4, 5}, 7, In(absl::Milliseconds(20))),
      StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("ranks 4, 5")));
}

TEST_P(LaneListenerTest, AListenerThatDoesNotAnswerIsGivenUp) {
  EXPECT_THAT(ConnectLane(listener_->address(), listener_->token(), 1, 7,
                          In(absl::Milliseconds(20))),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_P(LaneListenerTest, NobodyListensAfterwards) {
  const std::string address = listener_->address();
  listener_ = nullptr;
  EXPECT_THAT(ConnectLane(address, "", 1, 7, In(kLong)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(address)));
}

INSTANTIATE_TEST_SUITE_P(All, LaneListenerTest,
                         testing::Values("127.0.0.1", "localhost", "unix"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '.');
                           return name;
                         });

TEST(LaneAddressTest, WhatIsNoAddressIsRefused) {
  for (const char* address : {"", "tcp:", "10.0.0.1:80", "udp:x:1"}) {
    EXPECT_THAT(ConnectLane(address, "", 0, 1, In(kLong)),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << address;
  }
  EXPECT_THAT(
      LaneListener::ListenTcp("192.0.2.1"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("192.0.2.1")));
}

}  // namespace
}  // namespace muster
