#include "common/net/rpc/reconnecting_stream.h"

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/core/system/testing/await_true.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/network.h"
#include "common/net/rpc/service.h"
#include "common/net/rpc/tick_loop.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/rpc.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kTestTimeout = absl::Seconds(60);
constexpr absl::Duration kTick = absl::Milliseconds(10);

absl::Time Soon() { return Clock::Real()->Now() + kTestTimeout; }

// Records each event as a line.
class Recorder final : public ReconnectingStream::Listener {
 public:
  // Runs on the calling thread before a message is recorded.
  std::function<void()> before_message = [] {};
  // The message "welcome" establishes the session of this stream.
  ReconnectingStream* stream = nullptr;

  Message OnDial(int, uint64_t session) override {
    Write(absl::StrCat("dial ", session));
    return {absl::StrCat("hello ", session), {}};
  }
  void OnMessage(int, uint64_t session, ReceivedMessage message) override {
    before_message();
    if (message.body() == "welcome") stream->MarkEstablished(session);
    Write(absl::StrCat("message ", session, " ", message.body()));
  }
  void OnEnd(int, uint64_t session, const absl::Status& why) override {
    Write(absl::StrCat("end ", session, " ", why.message()));
  }

  std::vector<std::string> lines() const {
    absl::MutexLock lock(&mutex_);
    return lines_;
  }
  // Blocks until `count` lines begin with `text`.
  bool Await(const std::string& text, int count = 1) const {
    absl::MutexLock lock(&mutex_);
    const auto is_there = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      int found = 0;
      for (const std::string& line : lines_) found += line.rfind(text, 0) == 0;
      return found >= count;
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&is_there), kTestTimeout);
  }

 private:
  void Write(std::string line) {
    absl::MutexLock lock(&mutex_);
    lines_.push_back(std::move(line));
  }

  mutable absl::Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

// ---- Over a fake transport and with simulated time.

class FakeStream final : public Stream {
 public:
  explicit FakeStream(std::shared_ptr<StreamObserver> observer)
      : observer_(std::move(observer)) {}

  absl::Status Send(const Message& message) override {
    sent.push_back(message.body);
    return absl::OkStatus();
  }
  void Finish(absl::Status) override { is_finished = true; }
  // Calls back at once, which deadlocks if a lock is held.
  void Cancel() override {
    is_cancelled = true;
    on_cancel();
    if (is_cancel_reported) End(absl::CancelledError("cancelled"));
  }

  void Receive(const std::string& body) {
    observer_->OnMessage(
        ReceivedMessage::Parse(EncodeMessage({}, {body, {}})).value());
  }
  void End(const absl::Status& status) {
    const std::shared_ptr<StreamObserver> observer =
        std::exchange(observer_, nullptr);
    if (observer != nullptr) observer->OnDone(status);
  }

  std::vector<std::string> sent;
  bool is_cancelled = false;
  bool is_cancel_reported = true;
  bool is_finished = false;
  std::function<void()> on_cancel = [] {};

 private:
  std::shared_ptr<StreamObserver> observer_;
};

class FakeChannel final : public Channel {
 public:
  std::string peer() const override { return "peer"; }
  void SetTargetIncarnation(uint64_t) override {}
  uint64_t target_incarnation() const override { return 0; }
  void SetJobId(absl::string_view) override {}
  void StartCall(absl::string_view, const Message&, const CallOptions&,
                 Done) override {}
  std::shared_ptr<Stream> OpenStream(
      absl::string_view, std::shared_ptr<StreamObserver> observer) override {
    streams.push_back(std::make_shared<FakeStream>(std::move(observer)));
    while_dialling(streams.back().get());
    return streams.back();
  }

  std::vector<std::shared_ptr<FakeStream>> streams;
  std::function<void(FakeStream*)> while_dialling = [](FakeStream*) {};
};

class ReconnectingStreamTest : public testing::Test {
 protected:
  ReconnectingStreamTest()
      : loop_(
            kTick, [](const TickLoop::Turn&) { return absl::Time(); },
            &clock_) {
    auto channel = std::make_unique<FakeChannel>();
    channel_ = channel.get();
    stream_ = std::make_unique<ReconnectingStream>(
        ReconnectingStream::Options{
            .method = "/test/Talk",
            .backoff = {.initial = absl::Milliseconds(100),
                        .maximum = absl::Milliseconds(400),
                        .multiplier = 2,
                        .jitter = 0},
            .redial_delay = absl::Milliseconds(5)},
        std::move(channel), &recorder_, &loop_);
    recorder_.stream = stream_.get();
  }

  absl::Time Advance(bool is_tick = false) {
    return stream_->Advance({.now = clock_.Now(), .is_tick = is_tick});
  }
  // Advances the stream, and returns the time until it must advance again.
  absl::Duration Wait() { return Advance() - clock_.Now(); }
  FakeStream& last() { return *channel_->streams.back(); }

  // Calls Stop() while another thread dials. `while_dialling` runs before
  // Stop().
  void StopWhileDialling(std::function<void(FakeStream*)> while_dialling) {
    Advance();
    last().Receive("welcome");
    absl::Notification is_dialling, may_return;
    // Stop() cancels the stream, which lets the dial continue.
    last().on_cancel = [&] { may_return.Notify(); };
    stream_->Renew(1);
    bool has_returned = false;
    channel_->while_dialling = [&](FakeStream* stream) {
      while_dialling(stream);
      is_dialling.Notify();
      EXPECT_TRUE(may_return.WaitForNotificationWithTimeout(kTestWaitMax));
      has_returned = true;
    };
    std::thread dialler([&] { Advance(); });
    EXPECT_TRUE(is_dialling.WaitForNotificationWithTimeout(kTestWaitMax));
    stream_->Stop();
    EXPECT_TRUE(has_returned);
    dialler.join();
  }

  SimulatedClock clock_;
  Recorder recorder_;
  TickLoop loop_;  // Not started: the tests call Advance() themselves.
  FakeChannel* channel_ = nullptr;
  std::unique_ptr<ReconnectingStream> stream_;
};

TEST_F(ReconnectingStreamTest, SendsInEstablishedSessionsOnly) {
  EXPECT_THAT(stream_->Send(1, {"early", {}}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("session 1")));
  Advance();
  EXPECT_THAT(stream_->Send(1, {"early", {}}),
              StatusIs(absl::StatusCode::kUnavailable));
  last().Receive("welcome");
  EXPECT_OK(stream_->Send(1, {"a", {}}));
  EXPECT_OK(stream_->Send(1, {"b", {}}));
  EXPECT_THAT(last().sent, ElementsAre("hello 1", "a", "b"));
}

TEST_F(ReconnectingStreamTest, SessionsThatFailAreDialledMoreAndMoreSlowly) {
  std::vector<absl::Duration> waits;
  for (int i = 0; i < 4; ++i) {
    Advance();
    last().End(absl::UnavailableError("refused"));
    waits.push_back(Wait());
    clock_.Advance(waits.back() - absl::Nanoseconds(1));
    Advance();
    EXPECT_EQ(channel_->streams.size(), i + 1u);
    clock_.Advance(absl::Nanoseconds(1));
  }
  EXPECT_THAT(waits,
              ElementsAre(absl::Milliseconds(100), absl::Milliseconds(200),
                          absl::Milliseconds(400), absl::Milliseconds(400)));
  Advance();
  last().Receive("welcome");
  EXPECT_TRUE(stream_->is_established());
  last().End(absl::UnavailableError("broken"));
  EXPECT_FALSE(stream_->is_established());
  EXPECT_EQ(Wait(), absl::Milliseconds(5));
  clock_.Advance(absl::Milliseconds(5));
  Advance();
  last().End(absl::UnavailableError("refused"));
  EXPECT_EQ(Wait(), absl::Milliseconds(100));
}

TEST_F(ReconnectingStreamTest, ADialThatFailsAtOnceIsOneFailedSession) {
  channel_->while_dialling = [](FakeStream* stream) {
    stream->End(absl::UnavailableError("refused"));
  };
  Advance();
  EXPECT_EQ(Wait(), absl::Milliseconds(100));
  EXPECT_THAT(stream_->Send(1, {"late", {}}),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(recorder_.lines(), ElementsAre("dial 1", "end 1 refused"));
}

TEST_F(ReconnectingStreamTest, SilenceIsCountedInTicksSinceTheLastMessage) {
  Advance();
  last().Receive("welcome");
  const absl::Duration timeout = 5 * kTick;
  clock_.Advance(absl::Hours(1));  // As if this process had been stopped.
  EXPECT_FALSE(stream_->IsSilentFor(timeout));
  for (int i = 0; i < 5; ++i) Advance(/*is_tick=*/true);
  EXPECT_FALSE(stream_->IsSilentFor(timeout));
  Advance(/*is_tick=*/true);
  EXPECT_TRUE(stream_->IsSilentFor(timeout));
  last().Receive("still there");
  EXPECT_FALSE(stream_->IsSilentFor(timeout));
  for (int i = 0; i < 6; ++i) Advance(/*is_tick=*/true);
  last().End(absl::UnavailableError("broken"));
  EXPECT_FALSE(stream_->IsSilentFor(timeout));
  for (int i = 0; i < 6; ++i) {
    clock_.Advance(absl::Seconds(1));
    Advance(/*is_tick=*/true);
    if (i % 2 == 0) last().End(absl::UnavailableError("refused"));
  }
  EXPECT_TRUE(stream_->IsSilentFor(timeout));
}

TEST_F(ReconnectingStreamTest, AnEndedSessionDeliversItsReasonAndNothingElse) {
  Advance();
  last().Receive("welcome");
  FakeStream& first = last();
  stream_->End(1, absl::UnavailableError("silent"));
  stream_->End(1, absl::UnavailableError("again"));
  first.Receive("late");
  Advance();
  EXPECT_TRUE(first.is_cancelled);
  clock_.Advance(absl::Milliseconds(5));
  Advance();
  stream_->End(1, absl::UnavailableError("stale"));
  EXPECT_THAT(stream_->Send(1, {"stale", {}}),
              StatusIs(absl::StatusCode::kUnavailable));
  Advance();
  EXPECT_FALSE(last().is_cancelled);
  EXPECT_THAT(recorder_.lines(), ElementsAre("dial 1", "message 1 welcome",
                                             "end 1 silent", "dial 2"));
}

TEST_F(ReconnectingStreamTest, ASessionMayBeEndedWhileItIsDialled) {
  channel_->while_dialling = [&](FakeStream*) {
    stream_->End(1, absl::UnavailableError("too slow"));
  };
  Advance();
  EXPECT_TRUE(last().is_cancelled);
  EXPECT_THAT(last().sent, IsEmpty());
  EXPECT_THAT(recorder_.lines(), ElementsAre("dial 1", "end 1 too slow"));
}

TEST_F(ReconnectingStreamTest, ARenewedSessionStaysUntilTheNextIsEstablished) {
  Advance();
  last().Receive("welcome");
  FakeStream& first = last();
  stream_->Renew(1);
  Advance();
  ASSERT_EQ(channel_->streams.size(), 2u);
  first.Receive("late");
  EXPECT_FALSE(first.is_cancelled);
  last().Receive("welcome");
  Advance();
  EXPECT_TRUE(first.is_cancelled);
  EXPECT_FALSE(last().is_cancelled);
  EXPECT_THAT(recorder_.lines(), ElementsAre("dial 1", "message 1 welcome",
                                             "dial 2", "message 2 welcome"));
}

TEST_F(ReconnectingStreamTest, ASessionRenewedWhileDialledStillBegins) {
  channel_->while_dialling = [&](FakeStream*) { stream_->Renew(1); };
  Advance();
  channel_->while_dialling = [](FakeStream*) {};
  EXPECT_THAT(last().sent, ElementsAre("hello 1"));
  EXPECT_FALSE(last().is_cancelled);
  Advance();
  last().Receive("welcome");
  Advance();
  EXPECT_TRUE(channel_->streams[0]->is_cancelled);
  EXPECT_FALSE(last().is_cancelled);
}

TEST_F(ReconnectingStreamTest, NothingIsDialledAfterStopDialling) {
  Advance();
  last().Receive("welcome");
  stream_->StopDialling();
  EXPECT_OK(stream_->Send(1, {"goodbye", {}}));
  EXPECT_FALSE(stream_->AwaitClosed(clock_.Now()));
  last().End(absl::OkStatus());
  EXPECT_TRUE(stream_->AwaitClosed(clock_.Now()));
  EXPECT_EQ(Advance(), absl::InfiniteFuture());
  clock_.Advance(absl::Hours(1));
  Advance();
  EXPECT_EQ(channel_->streams.size(), 1u);
}

TEST_F(ReconnectingStreamTest, FinishHalfClosesTheLastSession) {
  Advance();
  stream_->Finish();
  EXPECT_TRUE(last().is_finished);
  EXPECT_FALSE(last().is_cancelled);
}

TEST_F(ReconnectingStreamTest, StopWaitsForTheDialAndCancelsWhatItBrings) {
  StopWhileDialling([](FakeStream*) {});
  EXPECT_TRUE(last().is_cancelled);
  EXPECT_THAT(last().sent, IsEmpty());
  EXPECT_THAT(recorder_.lines(),
              ElementsAre("dial 1", "message 1 welcome", "dial 2"));
}

TEST_F(ReconnectingStreamTest, StopWaitsForADialWhoseStreamHasEnded) {
  StopWhileDialling([](FakeStream* stream) {
    stream->End(absl::UnavailableError("refused"));
  });
  EXPECT_THAT(recorder_.lines(), ElementsAre("dial 1", "message 1 welcome",
                                             "dial 2", "end 2 refused"));
}

TEST_F(ReconnectingStreamTest, StopWaitsForTheCallbackThatRuns) {
  Advance();
  FakeStream& stream = last();
  // A transport reports the end only after the previous callback has returned.
  stream.is_cancel_reported = false;
  absl::Notification is_called, may_return;
  bool has_returned = false;
  recorder_.before_message = [&] {
    is_called.Notify();
    EXPECT_TRUE(may_return.WaitForNotificationWithTimeout(kTestWaitMax));
    has_returned = true;
  };
  stream.on_cancel = [&] { may_return.Notify(); };
  std::thread transport([&] {
    stream.Receive("slow");
    stream.End(absl::CancelledError("cancelled"));
  });
  EXPECT_TRUE(is_called.WaitForNotificationWithTimeout(kTestWaitMax));
  stream_->Stop();
  EXPECT_TRUE(has_returned);
  EXPECT_TRUE(stream.is_cancelled);
  EXPECT_TRUE(stream_->AwaitClosed(clock_.Now()));
  transport.join();
  EXPECT_THAT(recorder_.lines(), ElementsAre("dial 1", "message 1 slow"));
}

// ---- Over gRPC, with a running loop.

// Answers "hello" with "welcome" and sends everything else back.
class Echo final : public StreamObserver {
 public:
  explicit Echo(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}

  void OnMessage(ReceivedMessage message) override {
    const std::string body(message.body());
    const bool is_hello = body.rfind("hello", 0) == 0;
    stream_->Send({is_hello ? "welcome" : body, {}}).IgnoreError();
  }
  void OnHalfClose() override { stream_->Finish(absl::OkStatus()); }
  void OnDone(const absl::Status&) override {}

 private:
  const std::shared_ptr<Stream> stream_;
};

// Ends every stream at its first message.
class Refuser final : public StreamObserver {
 public:
  explicit Refuser(std::shared_ptr<Stream> stream)
      : stream_(std::move(stream)) {}

  void OnMessage(ReceivedMessage) override {
    stream_->Finish(absl::FailedPreconditionError("not you"));
  }
  void OnDone(const absl::Status&) override {}

 private:
  const std::shared_ptr<Stream> stream_;
};

class GrpcReconnectingStreamTest : public testing::Test {
 protected:
  GrpcReconnectingStreamTest()
      : admission_check_({"ps", 1, 77}),
        loop_(
            kTick,
            [this](const TickLoop::Turn& turn) {
              return stream_->Advance(turn);
            },
            Clock::Real()) {
    service_.AddStream("/test/Talk", [](std::shared_ptr<Stream> stream) {
      return std::make_shared<Echo>(std::move(stream));
    });
    service_.AddStream("/test/Refuse", [](std::shared_ptr<Stream> stream) {
      return std::make_shared<Refuser>(std::move(stream));
    });
    Listen();
  }

  ~GrpcReconnectingStreamTest() override { loop_.Stop(); }

  void Listen() {
    server_ = Network::Grpc()
                  ->Listen({.address = address_}, &service_, &admission_check_)
                  .value();
    address_ = server_->address();
  }

  void Start(const std::string& method = "/test/Talk") {
    ChannelOptions options;
    options.address = address_;
    options.peer_task_type = "ps";
    options.peer_task_index = 1;
    options.caller = {"worker", 0, 5};
    options.job_id = "job";
    stream_ = std::make_unique<ReconnectingStream>(
        ReconnectingStream::Options{.method = method,
                                    .backoff = {.maximum = kTick}},
        Network::Grpc()->Connect(options), &recorder_, &loop_);
    recorder_.stream = stream_.get();
    loop_.Start();
  }

  AdmissionCheck admission_check_;
  Service service_;
  std::string address_ = "127.0.0.1:0";
  std::unique_ptr<Server> server_;
  Recorder recorder_;
  TickLoop loop_;
  std::unique_ptr<ReconnectingStream> stream_;
};

TEST_F(GrpcReconnectingStreamTest, OpensAndKeepsTheOrderOfWhatIsSent) {
  Start();
  ASSERT_TRUE(recorder_.Await("message 1 welcome"));
  std::vector<std::string> expected = {"dial 1", "message 1 welcome"};
  for (int i = 0; i < 1000; ++i) {
    ASSERT_OK(stream_->Send(1, {absl::StrCat(i), {}}));
    expected.push_back(absl::StrCat("message 1 ", i));
  }
  ASSERT_TRUE(recorder_.Await(expected.back()));
  EXPECT_EQ(recorder_.lines(), expected);
}

TEST_F(GrpcReconnectingStreamTest, ReconnectsWhenTheServerRestarts) {
  Start();
  ASSERT_TRUE(recorder_.Await("message 1 welcome"));
  server_ = nullptr;
  ASSERT_TRUE(recorder_.Await("end 1 "));
  // No process listens: several dials fail.
  ASSERT_TRUE(recorder_.Await("end ", 4));
  EXPECT_FALSE(stream_->is_established());
  Listen();
  ASSERT_TRUE(recorder_.Await("message ", 2));
  EXPECT_TRUE(stream_->is_established());
}

TEST_F(GrpcReconnectingStreamTest, ARefusalIsReportedAndTriedAgain) {
  Start("/test/Refuse");
  ASSERT_TRUE(recorder_.Await("end 2 "));
  EXPECT_THAT(recorder_.lines()[1], HasSubstr("not you"));
}

TEST_F(GrpcReconnectingStreamTest, EndsAndIsOpenedAgain) {
  Start();
  ASSERT_TRUE(recorder_.Await("message 1 welcome"));
  stream_->End(1, absl::UnavailableError("enough"));
  ASSERT_TRUE(recorder_.Await("message 2 welcome"));
  EXPECT_THAT(recorder_.lines(),
              ElementsAre("dial 1", "message 1 welcome", "end 1 enough",
                          "dial 2", "message 2 welcome"));
}

TEST_F(GrpcReconnectingStreamTest, FinishLetsThePeerReadEverything) {
  Start();
  ASSERT_TRUE(recorder_.Await("message 1 welcome"));
  ASSERT_OK(stream_->Send(1, {"goodbye", {}}));
  stream_->Finish();
  EXPECT_TRUE(stream_->AwaitClosed(Soon()));
  EXPECT_THAT(recorder_.lines(), ElementsAre("dial 1", "message 1 welcome",
                                             "message 1 goodbye", "end 1 "));
}

TEST_F(GrpcReconnectingStreamTest, StopsAtAnyTimeFromAnyThread) {
  Start();
  // Stop() may run before, during or after the dial.
  std::thread([&] { stream_->Stop(); }).join();
  const size_t line_count = recorder_.lines().size();
  loop_.Wake();
  loop_.Stop();
  EXPECT_EQ(recorder_.lines().size(), line_count);
}

TEST_F(GrpcReconnectingStreamTest, StopsWhileOthersSend) {
  Start();
  ASSERT_TRUE(recorder_.Await("message 1 welcome"));
  absl::Notification is_sending;
  std::thread sender([&] {
    for (int i = 0;; ++i) {
      if (absl::IsUnavailable(stream_->Send(1, {"text", {}}))) break;
      if (i == 10) is_sending.Notify();
    }
  });
  EXPECT_TRUE(is_sending.WaitForNotificationWithTimeout(kTestWaitMax));
  stream_->Stop();
  const size_t line_count = recorder_.lines().size();
  sender.join();
  EXPECT_EQ(recorder_.lines().size(), line_count);
}

}  // namespace
}  // namespace muster
