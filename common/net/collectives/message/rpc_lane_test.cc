#include "common/net/collectives/message/rpc_lane.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/core/system/testing/await_true.h"
#include "common/net/collectives/message/frame.h"
#include "common/net/collectives/message/lane.h"
#include "common/net/rpc/channel.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/network.h"
#include "common/net/rpc/service.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::Time In(absl::Duration duration) {
  return Clock::Real()->Now() + duration;
}
constexpr absl::Duration kLong = absl::Seconds(30);
constexpr absl::Duration kShort = absl::Milliseconds(20);

class RpcLaneTest : public testing::Test {
 protected:
  RpcLaneTest() : admission_check_({"worker", 0, 7}) {
    acceptor_.AddTo(&service_);
  }

  void SetUp() override { Listen(&service_); }

  void Listen(const Service* service) {
    channel_ = nullptr;
    ASSERT_OK_AND_ASSIGN(
        server_, Network::Grpc()->Listen({.address = "127.0.0.1:0"}, service,
                                         &admission_check_));
    ChannelOptions options;
    options.address = server_->address();
    options.peer_task_type = "worker";
    options.caller = {"worker", 1, 8};
    channel_ = Network::Grpc()->Connect(options);
  }

  absl::StatusOr<std::unique_ptr<Lane>> Open(int rank, uint64_t generation) {
    return OpenRpcLane(channel_.get(), rank, generation, In(kLong));
  }

  AdmissionCheck admission_check_;
  Service service_;
  RpcLaneAcceptor acceptor_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Channel> channel_;
};

TEST_F(RpcLaneTest, LanesWaitUntilTheyAreAccepted) {
  acceptor_.StartGeneration(4);
  ASSERT_OK_AND_ASSIGN(auto opened, Open(3, 5));
  ASSERT_OK_AND_ASSIGN(auto accepted, acceptor_.Accept(3, 5, In(kLong)));
  EXPECT_EQ(opened->transport(), "gRPC");
  EXPECT_EQ(accepted->transport(), "gRPC");
}

TEST_F(RpcLaneTest, LanesOfEarlierGenerationsAreRefused) {
  acceptor_.StartGeneration(6);
  EXPECT_THAT(Open(3, 5),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("worker 0"), HasSubstr("generation 5"),
                             HasSubstr("at 6"))));
  EXPECT_THAT(acceptor_.Accept(3, 5, In(kLong)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(RpcLaneTest, ANewGenerationClosesLanesThatWereNotAccepted) {
  ASSERT_OK_AND_ASSIGN(auto opened, Open(3, 5));
  acceptor_.StartGeneration(6);
  absl::Status status;
  const absl::Time deadline = In(kLong);
  while (status.ok() && Clock::Real()->Now() < deadline) {
    status = opened->NextFrame().status();
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
}

// Observes a stream on which a copy of the opening of a lane is sent.
class CopyObserver final : public StreamObserver {
 public:
  void OnMessage(ReceivedMessage) override { was_answered_.Notify(); }
  void OnDone(const absl::Status& status) override {
    status_ = status;
    is_done_.Notify();
  }
  void AwaitAnswer() {
    EXPECT_TRUE(was_answered_.WaitForNotificationWithTimeout(kTestWaitMax));
  }
  absl::Status AwaitEnd() {
    EXPECT_TRUE(is_done_.WaitForNotificationWithTimeout(kTestWaitMax));
    return status_;
  }

 private:
  absl::Notification was_answered_;
  absl::Notification is_done_;
  absl::Status status_;
};

TEST_F(RpcLaneTest, ADuplicateOpeningHasNoEffect) {
  ASSERT_OK_AND_ASSIGN(auto opened, Open(3, 5));
  const auto observer = std::make_shared<CopyObserver>();
  const auto copy = channel_->OpenStream(kOpenLaneMethod, observer);
  const struct {
    uint64_t generation = 5;
    int64_t rank = 3;
  } hello;
  std::string note = "H";
  note.append(reinterpret_cast<const char*>(&hello), sizeof(hello));
  ASSERT_OK(copy->Send({note, {}}));
  observer->AwaitAnswer();
  ASSERT_OK_AND_ASSIGN(auto accepted, acceptor_.Accept(3, 5, In(kLong)));
  OutgoingFrame frame;
  frame.header.kind = FrameKind::kArrived;
  ASSERT_THAT(opened->Send(frame), IsOkAndHolds(true));
  const absl::Time deadline = In(kLong);
  absl::StatusOr<const FrameHeader*> header = nullptr;
  while (header.ok() && *header == nullptr && Clock::Real()->Now() < deadline) {
    header = accepted->NextFrame();
  }
  ASSERT_OK(header);
  EXPECT_NE(*header, nullptr);
  // The opener confirms the number of its own answer, which differs from that
  // of the answer to the copy.
  ASSERT_OK(copy->Send({"O12345678", {}}));
  EXPECT_THAT(observer->AwaitEnd(),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("copy")));
}

TEST_F(RpcLaneTest, ARankThatOpensNoLaneIsNamed) {
  EXPECT_THAT(acceptor_.Accept(3, 5, In(kShort)),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("rank 3"), HasSubstr("generation 5"))));
}

TEST_F(RpcLaneTest, ATaskThatAcceptsNoLanesReturnsAnError) {
  const Service without_lanes;
  Listen(&without_lanes);
  EXPECT_THAT(Open(3, 5), StatusIs(absl::StatusCode::kUnimplemented,
                                   HasSubstr("worker 0")));
  server_ = nullptr;
  EXPECT_THAT(Open(3, 5), StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace muster
