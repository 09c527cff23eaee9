#include "common/net/rpc/network.h"

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/tensor/tensor.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/service.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/rpc.pb.h"
#include "tests/simulation/network/simulated_network.h"
#include "tests/simulation/scheduler/scheduler.h"
#include "tests/simulation/scheduler/testing/seed_expectations.h"

namespace muster::sim {
namespace {

constexpr char kServer[] = "10.0.0.1";
constexpr char kClient[] = "10.0.0.2";
constexpr char kAddress[] = "10.0.0.1:2222";
constexpr uint64_t kIncarnation = 77;

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
    mutex_.AwaitWithTimeout(absl::Condition(&is_done_), absl::Minutes(10));
    return is_done_ ? status_ : absl::InternalError("the stream did not end");
  }
  std::vector<std::string> bodies() {
    absl::MutexLock lock(&mutex_);
    return bodies_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<std::string> bodies_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool is_done_ ABSL_GUARDED_BY(mutex_) = false;
};

class EchoObserver final : public StreamObserver {
 public:
  explicit EchoObserver(std::shared_ptr<Stream> stream)
      : stream_(std::move(stream)) {}
  void OnMessage(ReceivedMessage message) override {
    stream_->Send(Message{std::string(message.body()), {}}).IgnoreError();
  }
  void OnHalfClose() override { stream_->Finish(absl::OkStatus()); }
  void OnDone(const absl::Status&) override {}

 private:
  const std::shared_ptr<Stream> stream_;
};

// A server on one host and a client on another, whose program runs on a thread
// of the client's host.
class Fixture {
 public:
  explicit Fixture(Scheduler& scheduler,
                   const SimulatedNetworkOptions& options = {})
      : scheduler_(scheduler),
        network_(*new SimulatedNetwork(&scheduler, options)),
        server_host_(scheduler.AddHost("server")),
        client_host_(scheduler.AddHost("client")),
        admission_check_({"ps", 1, kIncarnation}) {
    network_.transport().AddHost(server_host_, kServer);
    network_.transport().AddHost(client_host_, kClient);
    service_.AddUnary("/test/Add",
                      [this](ReceivedMessage message, Responder responder) {
                        ++call_count_;
                        responder.Respond(Message{std::string(message.body()),
                                                  message.ToTensors().value()});
                      });
    service_.AddStream("/test/Echo", [](std::shared_ptr<Stream> stream) {
      return std::make_shared<EchoObserver>(std::move(stream));
    });
    On(server_host_, [this] { StartServer(); });
    On(client_host_, [this] {
      ChannelOptions channel;
      channel.address = kAddress;
      channel.peer_task_type = "ps";
      channel.peer_task_index = 1;
      channel.caller = {"worker", 0, 5};
      channel.job_id = "job";
      channel.keepalive = absl::Seconds(3);
      channel_ = network_.Connect(channel);
    });
  }

  // Runs `work` on a host and waits for its end.
  void On(HostId host, std::function<void()> work) {
    absl::Mutex mutex;
    bool is_done = false;
    scheduler_.StartThread(host, "test", [&] {
      work();
      absl::MutexLock lock(&mutex);
      is_done = true;
    });
    absl::MutexLock lock(&mutex);
    mutex.Await(absl::Condition(&is_done));
  }

  void StartServer() {
    server_ =
        network_.Listen({.address = kAddress}, &service_, &admission_check_)
            .value();
  }

  absl::StatusOr<ReceivedMessage> Call(
      absl::Duration timeout = absl::Seconds(30), const Message& message = {}) {
    absl::StatusOr<ReceivedMessage> answer = absl::UnknownError("");
    On(client_host_, [&] {
      answer =
          channel_->CallAndWait("/test/Add", message, {.timeout = timeout});
    });
    return answer;
  }

  Scheduler& scheduler_;
  SimulatedNetwork& network_;  // Its threads run until the process exits.
  const HostId server_host_;
  const HostId client_host_;
  AdmissionCheck admission_check_;
  Service service_;
  int call_count_ = 0;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Channel> channel_;
};

TEST(SimulatedNetworkTest, SendsTensorsAndReturnsTheIdentityOfTheServer) {
  ExpectSuccess(20, [](Scheduler& scheduler, RunReport*) -> int {
    Fixture fixture(scheduler);
    const Tensor sent = Tensor::Full(DType::kFloat32, {10'000}, 7);
    const auto answer = fixture.Call(absl::Seconds(30), {"body", {sent}});
    if (!answer.ok() || answer->body() != "body") return 1;
    const Tensor received = answer->ToTensors().value()[0];
    if (received.flat<float>()[9'999] != 7) return 2;
    if (received.raw_data() == sent.raw_data()) return 3;
    return answer->identity().caller_incarnation() == kIncarnation ? 0 : 4;
  });
}

TEST(SimulatedNetworkTest, RefusesCallsForAnotherProcessOrMethod) {
  ExpectSuccess(20, [](Scheduler& scheduler, RunReport*) -> int {
    Fixture fixture(scheduler);
    fixture.channel_->SetTargetIncarnation(76);
    if (!absl::IsFailedPrecondition(fixture.Call().status())) return 1;
    fixture.channel_->SetTargetIncarnation(kIncarnation);
    proto::RequestIdentity another;
    another.set_job_id("another");
    if (!fixture.admission_check_.AdoptJob(another).ok()) return 2;
    return absl::IsPermissionDenied(fixture.Call().status()) ? 0 : 3;
  });
}

TEST(SimulatedNetworkTest, StreamsKeepTheOrderAndEnd) {
  ExpectSuccess(20, [](Scheduler& scheduler, RunReport*) -> int {
    Fixture fixture(scheduler);
    auto recorder = std::make_shared<Recorder>();
    std::vector<std::string> sent;
    absl::Status end;
    fixture.On(fixture.client_host_, [&] {
      const auto stream = fixture.channel_->OpenStream("/test/Echo", recorder);
      for (int i = 0; i < 50; ++i) {
        sent.push_back(absl::StrCat(i));
        stream->Send({sent.back(), {}}).IgnoreError();
      }
      stream->Finish(absl::OkStatus());
      end = recorder->WaitUntilDone();
    });
    return end.ok() && recorder->bodies() == sent ? 0 : 1;
  });
}

TEST(SimulatedNetworkTest, ExecutesACallThatArrivesTwiceOnce) {
  int64_t repeated_count = 0;
  for (const SeedRun& run :
       ExpectSuccess(50, [](Scheduler&scheduler, RunReport*report) -> int {
         Fixture fixture(scheduler, {.duplicate_one_in = 1});
         if (!fixture.Call().ok()) return 1;
         absl::SleepFor(absl::Seconds(1));
         report->value = fixture.network_.repeated_call_count();
         // Each copy that was refused may have led to one more call.
         return fixture.call_count_ <= 1 + report->value ? 0 : 2;
       })) {
    repeated_count += run.report.value;
  }
  EXPECT_GE(repeated_count, 50);
}

TEST(SimulatedNetworkTest, ABrokenConnectionFailsCallsAndIsReplaced) {
  int failed_count = 0;
  for (const SeedRun& run :
       ExpectSuccess(50, [](Scheduler&scheduler, RunReport*report) -> int {
         Fixture fixture(scheduler);
         if (!fixture.Call().ok()) return 1;
         scheduler.StartThread(kSimulationHost, "break", [&] {
           absl::SleepFor(absl::Microseconds(scheduler.Below(1000)));
           fixture.network_.transport().BreakConnections(kClient, kServer);
         });
         const absl::Status status = fixture.Call().status();
         if (!status.ok() && !absl::IsUnavailable(status)) return 2;
         report->value = status.ok() ? 0 : 1;
         absl::SleepFor(absl::Seconds(1));
         return fixture.Call().ok() ? 0 : 3;
       })) {
    failed_count += static_cast<int>(run.report.value);
  }
  EXPECT_GT(failed_count, 0);
  EXPECT_LT(failed_count, 50);
}

TEST(SimulatedNetworkTest, AShortPartitionDelaysAndALongOneEndsTheConnection) {
  ExpectSuccess(20, [](Scheduler& scheduler, RunReport*) -> int {
    Fixture fixture(scheduler);
    if (!fixture.Call().ok()) return 1;
    SimulatedTransport& transport = fixture.network_.transport();
    const auto close_for = [&](absl::Duration duration) {
      transport.SetPath(kServer, kClient, false);
      scheduler.StartThread(kSimulationHost, "heal", [&transport, duration] {
        absl::SleepFor(duration);
        transport.SetPath(kServer, kClient, true);
      });
    };
    absl::Time start = absl::Now();
    close_for(absl::Seconds(5));
    if (!fixture.Call().ok()) return 2;
    if (absl::Now() - start < absl::Seconds(5)) return 3;
    absl::SleepFor(absl::Seconds(1));
    start = absl::Now();
    close_for(absl::Seconds(20));
    if (!absl::IsUnavailable(fixture.Call().status())) return 4;
    const absl::Duration waited = absl::Now() - start;
    // Twice the keepalive time.
    return waited > absl::Seconds(6) && waited < absl::Seconds(7) ? 0 : 5;
  });
}

TEST(SimulatedNetworkTest, AStoppedServerDelaysAndAKilledOneRefuses) {
  ExpectSuccess(20, [](Scheduler& scheduler, RunReport*) -> int {
    Fixture fixture(scheduler);
    if (!fixture.Call().ok()) return 1;
    scheduler.Stop(fixture.server_host_);
    if (!absl::IsDeadlineExceeded(fixture.Call(absl::Seconds(2)).status())) {
      return 2;
    }
    scheduler.Resume(fixture.server_host_);
    if (!fixture.Call().ok()) return 3;
    fixture.network_.transport().KillHost(fixture.server_host_);
    scheduler.Kill(fixture.server_host_);
    absl::SleepFor(absl::Seconds(1));
    const absl::Status status = fixture.Call().status();
    return absl::IsUnavailable(status) &&
                   status.message() ==
                       "ps 1 (10.0.0.1:2222): connection refused"
               ? 0
               : 4;
  });
}

TEST(SimulatedNetworkTest, AServerThatShutsDownEndsItsStreams) {
  ExpectSuccess(20, [](Scheduler& scheduler, RunReport*) -> int {
    Fixture fixture(scheduler);
    auto recorder = std::make_shared<Recorder>();
    fixture.On(fixture.client_host_, [&] {
      fixture.channel_->OpenStream("/test/Echo", recorder)
          ->Send({"hello", {}})
          .IgnoreError();
      absl::SleepFor(absl::Seconds(1));
    });
    fixture.On(fixture.server_host_,
               [&] { fixture.server_->Shutdown(absl::ZeroDuration()); });
    if (recorder->bodies().size() != 1) return 1;
    return absl::IsUnavailable(recorder->WaitUntilDone()) ? 0 : 2;
  });
}

}  // namespace
}  // namespace muster::sim

int main(int argc, char** argv) {
  return muster::sim::RunSeedTests(argc, argv);
}
