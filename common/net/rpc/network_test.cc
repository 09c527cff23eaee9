#include "common/net/rpc/network.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/testing/await_true.h"
#include "common/core/tensor/tensor.h"
#include "common/net/rpc/fault_point.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/service.h"
#include "common/net/rpc/status_detail.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/rpc.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr absl::Duration kTestTimeout = absl::Seconds(30);

// Collects the messages and the status of a stream.
class Recorder final : public StreamObserver {
 public:
  void OnMessage(ReceivedMessage message) override {
    absl::MutexLock lock(&mutex_);
    bodies_.emplace_back(message.body());
  }
  void OnDone(const absl::Status& status) override {
    absl::MutexLock lock(&mutex_);
    status_ = status;
    is_done_ = true;
  }

  absl::Status WaitUntilDone() {
    absl::MutexLock lock(&mutex_);
    if (!mutex_.AwaitWithTimeout(absl::Condition(&is_done_), kTestTimeout)) {
      return absl::DeadlineExceededError("the stream did not end");
    }
    return status_;
  }
  std::vector<std::string> WaitForBodies(size_t count) {
    absl::MutexLock lock(&mutex_);
    auto arrived = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return bodies_.size() >= count;
    };
    mutex_.AwaitWithTimeout(absl::Condition(&arrived), kTestTimeout);
    return bodies_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<std::string> bodies_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool is_done_ ABSL_GUARDED_BY(mutex_) = false;
};

// Sends every message back, and ends the stream when the client does.
class EchoObserver final : public StreamObserver {
 public:
  explicit EchoObserver(std::shared_ptr<Stream> stream)
      : stream_(std::move(stream)) {}
  void OnMessage(ReceivedMessage message) override {
    if (message.body() == "fail") {
      stream_->Finish(absl::DataLossError("as asked"));
      return;
    }
    stream_->Send(Message{std::string(message.body()), {}}).IgnoreError();
  }
  void OnHalfClose() override { stream_->Finish(absl::OkStatus()); }
  void OnDone(const absl::Status&) override {}

 private:
  const std::shared_ptr<Stream> stream_;
};

class NetworkTest : public testing::Test {
 protected:
  NetworkTest() : admission_check_({"ps", 1, 77}) {
    service_.AddUnary(
        "/test/Double", [](ReceivedMessage message, Responder responder) {
          Tensor result(DType::kFloat32, message.tensors()[0].type().shape);
          message.tensors()[0].CopyTo(result.mutable_raw_data());
          for (float& value : result.mutable_flat<float>()) value *= 2;
          responder.Respond(Message{std::string(message.body()), {result}});
        });
    service_.AddUnary("/test/Drop", [](ReceivedMessage, Responder) {});
    service_.AddUnary("/test/Keep",
                      [this](ReceivedMessage, Responder responder) {
                        absl::MutexLock lock(&mutex_);
                        kept_.push_back(std::move(responder));
                      });
    service_.AddUnary("/test/Fail", [](ReceivedMessage, Responder responder) {
      proto::TaskFailure failure;
      failure.set_task_type("worker");
      failure.set_task_index(4);
      responder.Respond(
          WithTaskFailure(absl::AbortedError(std::string(5000, 'x')), failure));
    });
    service_.AddCall<proto::TaskFailure, proto::TaskFailure>(
        "/test/Typed",
        [](const proto::TaskFailure& request)
            -> absl::StatusOr<proto::TaskFailure> {
          proto::TaskFailure response = request;
          response.set_task_index(request.task_index() + 1);
          return response;
        });
    service_.AddStream("/test/Echo", [](std::shared_ptr<Stream> stream) {
      return std::make_shared<EchoObserver>(std::move(stream));
    });
    service_.AddStream("/test/KeepStream",
                       [this](const std::shared_ptr<Stream>& stream) {
                         absl::MutexLock lock(&mutex_);
                         kept_stream_ = stream;
                         return std::make_shared<Recorder>();
                       });
  }

  void SetUp() override {
    ServerOptions options;
    options.address = "127.0.0.1:0";
    ASSERT_OK_AND_ASSIGN(server_, Network::Grpc()->Listen(options, &service_,
                                                          &admission_check_));
    channel_ = Connect();
  }

  void TearDown() override {
    absl::MutexLock lock(&mutex_);
    kept_.clear();
    kept_stream_ = nullptr;
  }

  // The server's end of the stream that /test/KeepStream opens.
  std::shared_ptr<Stream> KeptStream() {
    absl::MutexLock lock(&mutex_);
    auto opened = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return kept_stream_ != nullptr;
    };
    mutex_.AwaitWithTimeout(absl::Condition(&opened), kTestTimeout);
    return kept_stream_;
  }

  std::unique_ptr<Channel> Connect() {
    ChannelOptions options;
    options.address = server_->address();
    options.peer_task_type = "ps";
    options.peer_task_index = 1;
    options.caller = {"worker", 0, 5};
    options.job_id = "job";
    options.coordinator_epoch = 1;
    return Network::Grpc()->Connect(options);
  }

  AdmissionCheck admission_check_;
  Service service_;
  absl::Mutex mutex_;
  std::vector<Responder> kept_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Stream> kept_stream_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Server> server_;
  std::unique_ptr<Channel> channel_;
};

TEST_F(NetworkTest, TensorsOfEverySizeArriveAndComeBack) {
  for (const int64_t count : {0, 1, 3, 1000, 3000, 1 << 20}) {
    Tensor tensor(DType::kFloat32, Shape({count}));
    for (int64_t i = 0; i < count; ++i) {
      tensor.mutable_flat<float>()[i] = static_cast<float>(i);
    }
    ASSERT_OK_AND_ASSIGN(
        ReceivedMessage answer,
        channel_->CallAndWait("/test/Double", {"body", {tensor}}, {}));
    EXPECT_EQ(answer.body(), "body");
    ASSERT_OK_AND_ASSIGN(Tensor doubled, answer.tensors()[0].ToTensor());
    ASSERT_EQ(doubled.element_count(), count);
    for (int64_t i = 0; i < count; ++i) {
      ASSERT_EQ(doubled.flat<float>()[i], 2.0f * i);
    }
  }
}

TEST_F(NetworkTest, AnAnswerSaysWhichIncarnationGaveIt) {
  ASSERT_OK_AND_ASSIGN(
      ReceivedMessage answer,
      channel_->CallAndWait("/test/Double", {"", {Tensor::Scalar(1.0f)}}, {}));
  EXPECT_EQ(answer.identity().caller_incarnation(), 77);
  EXPECT_EQ(answer.identity().caller_task(), "ps 1");
}

TEST_F(NetworkTest, TypedCallsTakeAndGiveProtobufs) {
  proto::TaskFailure request;
  request.set_task_index(6);
  ASSERT_OK_AND_ASSIGN(
      proto::TaskFailure response,
      channel_->Call<proto::TaskFailure>("/test/Typed", request, {}));
  EXPECT_EQ(response.task_index(), 7);
}

TEST_F(NetworkTest, AnUnknownMethodIsNamed) {
  EXPECT_THAT(channel_->CallAndWait("/test/Nothing", {}, {}),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("ps 1 has no method /test/Nothing")));
}

TEST_F(NetworkTest, AForgottenRequestIsAnswered) {
  EXPECT_THAT(channel_->CallAndWait("/test/Drop", {}, {}),
              StatusIs(absl::StatusCode::kInternal));
}

TEST_F(NetworkTest, AStatusPayloadSurvivesTheWireHoweverLongTheMessage) {
  const absl::Status status =
      channel_->CallAndWait("/test/Fail", {}, {}).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kAborted, HasSubstr("xxx")));
  const auto failure = GetTaskFailure(status);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->task_type(), "worker");
  EXPECT_EQ(failure->task_index(), 4);
}

TEST_F(NetworkTest, ALateAnswerNamesThePeerTheAttemptAndTheWait) {
  const absl::Status status =
      channel_
          ->CallAndWait("/test/Keep", {}, {.timeout = absl::Milliseconds(50)})
          .status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded,
                               HasSubstr("ps 1 (127.0.0.1:")));
  const auto failure = GetTaskFailure(status);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->task_index(), 1);
  EXPECT_EQ(failure->attempted(), "/test/Keep");
  EXPECT_GE(failure->waited_seconds(), 0.04);
}

TEST_F(NetworkTest, ARefusedConnectionIsOneLineThatNamesThePeerOnce) {
  server_->Shutdown(absl::ZeroDuration());
  server_ = nullptr;
  const absl::Status status =
      channel_->CallAndWait("/test/Drop", {}, {}).status();
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kUnavailable,
                       MatchesRegex("ps 1 \\(127\\.0\\.0\\.1:[0-9]+\\): "
                                    "connection refused")));
}

TEST_F(NetworkTest, ARequestOfAnotherJobIsRefused) {
  proto::RequestIdentity identity;
  identity.set_job_id("another");
  ASSERT_OK(admission_check_.AdoptJob(identity));
  EXPECT_THAT(channel_->CallAndWait("/test/Drop", {}, {}),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("works for another job; worker 0 asked on "
                                 "behalf of job job")));
  channel_->SetJobId("another");
  EXPECT_THAT(channel_->CallAndWait("/test/Drop", {}, {}),
              StatusIs(absl::StatusCode::kInternal));
}

TEST_F(NetworkTest, ACallOfAnEarlierCoordinatorIsRefused) {
  proto::RequestIdentity identity;
  identity.set_job_id("job");
  identity.set_coordinator_epoch(2);
  ASSERT_OK(admission_check_.AdoptJob(identity));
  const absl::Status status =
      channel_->CallAndWait("/test/Drop", {}, {}).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr("works for coordinator epoch 2 of "
                                         "this job; worker 0 asked for epoch "
                                         "1")));
  EXPECT_TRUE(IsOfEarlierCoordinator(status));
}

TEST_F(NetworkTest, ARequestForAnEarlierProcessIsRefused) {
  channel_->SetTargetIncarnation(76);
  const absl::Status status =
      channel_->CallAndWait("/test/Drop", {}, {}).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr("was restarted")));
  EXPECT_EQ(GetTaskFailure(status)->task_index(), 1);
}

TEST_F(NetworkTest, StreamsKeepOrderAndEndBothWays) {
  auto recorder = std::make_shared<Recorder>();
  std::shared_ptr<Stream> stream = channel_->OpenStream("/test/Echo", recorder);
  std::vector<std::string> sent;
  for (int i = 0; i < 500; ++i) {
    sent.push_back(absl::StrCat(i));
    ASSERT_OK(stream->Send({sent.back(), {}}));
  }
  EXPECT_EQ(recorder->WaitForBodies(sent.size()), sent);
  stream->Finish(absl::OkStatus());
  EXPECT_OK(recorder->WaitUntilDone());
  EXPECT_THAT(stream->Send({"late", {}}),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(NetworkTest, AStreamEndsWithTheStatusItsServerGives) {
  auto recorder = std::make_shared<Recorder>();
  std::shared_ptr<Stream> stream = channel_->OpenStream("/test/Echo", recorder);
  ASSERT_OK(stream->Send({"fail", {}}));
  EXPECT_THAT(recorder->WaitUntilDone(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("as asked")));
}

// The call must not be destroyed between the decision to half-close it and the
// half-close.
TEST_F(NetworkTest, AServerMayEndAStreamWhileItsClientHalfCloses) {
  constexpr absl::string_view kPoint = "rpc.before_half_close";
  SetFaults({{.point = std::string(kPoint),
              .action = FaultAction::kDelay,
              .delay = absl::Milliseconds(300)}});
  auto recorder = std::make_shared<Recorder>();
  std::shared_ptr<Stream> stream =
      channel_->OpenStream("/test/KeepStream", recorder);
  std::thread client([&] { stream->Finish(absl::OkStatus()); });
  EXPECT_TRUE(AwaitTrue([&] { return FaultPointPassCount(kPoint) > 0; }));
  KeptStream()->Finish(absl::DataLossError("as asked"));
  EXPECT_THAT(recorder->WaitUntilDone(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("as asked")));
  client.join();
  SetFaults({});
}

TEST_F(NetworkTest, ALostServerEndsItsStreamsAndRefusesCalls) {
  auto recorder = std::make_shared<Recorder>();
  std::shared_ptr<Stream> stream = channel_->OpenStream("/test/Echo", recorder);
  ASSERT_OK(stream->Send({"hello", {}}));
  EXPECT_THAT(recorder->WaitForBodies(1), ElementsAre("hello"));
  server_->Shutdown(absl::ZeroDuration());
  EXPECT_FALSE(recorder->WaitUntilDone().ok());
  EXPECT_THAT(channel_->CallAndWait("/test/Drop", {}, {}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("ps 1 (")));
}

TEST_F(NetworkTest, ACancelledStreamEndsAsCancelled) {
  auto recorder = std::make_shared<Recorder>();
  std::shared_ptr<Stream> stream = channel_->OpenStream("/test/Echo", recorder);
  ASSERT_OK(stream->Send({"hello", {}}));
  recorder->WaitForBodies(1);
  stream->Cancel();
  EXPECT_THAT(recorder->WaitUntilDone(),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(NetworkTest, CallsOverThePeersLimitAreRefused) {
  const auto status = [&] {
    return channel_
        ->CallAndWait("/test/Double", {"", {Tensor::Scalar(1.0f)}}, {})
        .status();
  };
  ASSERT_OK(status());
  std::vector<std::unique_ptr<Channel>> channels;
  std::vector<std::shared_ptr<Stream>> streams;
  const auto open_stream = [&] {
    // A connection has at most 1024 streams.
    if (streams.size() % 1024 == 0) channels.push_back(Connect());
    streams.push_back(channels.back()->OpenStream(
        "/test/Echo", std::make_shared<Recorder>()));
  };
  for (int i = 0; i < 4 * 1024; ++i) open_stream();
  const absl::Time deadline = absl::Now() + absl::Seconds(50);
  absl::Status last = status();
  while (last.ok() && absl::Now() < deadline) {
    // While the previous call was in progress, a stream may have been refused
    // because of it. Opens another one.
    open_stream();
    last = status();
  }
  EXPECT_THAT(last, StatusIs(absl::StatusCode::kResourceExhausted,
                             HasSubstr("4096 calls in progress")));
  for (const auto& stream : streams) stream->Cancel();
  while (!last.ok() && absl::Now() < deadline) last = status();
  EXPECT_OK(last);
}

TEST_F(NetworkTest, ATakenAddressIsRefused) {
  ServerOptions options;
  options.address = server_->address();
  EXPECT_THAT(Network::Grpc()->Listen(options, &service_, &admission_check_),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr(" is taken by process ")));
  options.address = "nonsense";
  EXPECT_THAT(Network::Grpc()->Listen(options, &service_, &admission_check_),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace muster
