#include "coordinator/closure_dispatcher.h"

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/graph/graph_codec.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/kernels/kernel.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/core/system/log_format.h"
#include "common/core/system/testing/await_true.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/missing_tasks.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/exit_code.h"
#include "common/net/process/port_reservation.h"
#include "common/net/rpc/fault_point.h"
#include "common/net/rpc/network.h"
#include "coordinator/closure_arguments.h"
#include "coordinator/report_intake.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/graph.pb.h"
#include "proto/worker.pb.h"
#include "worker/client/step_signature.h"
#include "worker/testing/test_worker.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::Duration kTimeout = absl::Seconds(60);

absl::Time Soon() { return Clock::Real()->Now() + kTimeout; }

void Ignore(absl::string_view) {}

// A clock that shows the real time and can block other threads in
// AwaitWithDeadline().
class HoldingClock final : public Clock {
 public:
  absl::Time Now() override { return Clock::Real()->Now(); }
  bool AwaitWithDeadline(absl::Mutex* mutex, const absl::Condition& condition,
                         absl::Time deadline) override
      ABSL_SHARED_LOCKS_REQUIRED(mutex) {
    Clock::Real()->AwaitWithDeadline(mutex, condition, deadline);
    if (std::this_thread::get_id() == owner_) return condition.Eval();
    while (is_holding_) {
      is_held_ = true;
      static bool never = false;
      mutex->AwaitWithTimeout(absl::Condition(&never), absl::Milliseconds(1));
    }
    is_held_ = false;
    return condition.Eval();
  }

  void Hold() { is_holding_ = true; }
  // Blocks until another thread is blocked in the clock.
  void AwaitHeld() const {
    EXPECT_TRUE(AwaitTrue([this] { return is_held_.load(); }))
        << "no other thread waits";
  }
  void Release() { is_holding_ = false; }

 private:
  const std::thread::id owner_ = std::this_thread::get_id();
  std::atomic<bool> is_holding_ = false;
  std::atomic<bool> is_held_ = false;
};

// A coordinator and workers in this process, over gRPC.
class ClosureDispatcherTest : public testing::Test {
 protected:
  void TearDown() override { holding_clock_.Release(); }

  void StartWorkers(int count) {
    std::vector<std::string> addresses;
    for (int i = 0; i < count; ++i) {
      ports_.push_back(PortReservation::Create().value());
      addresses.push_back(absl::StrCat("127.0.0.1:", ports_.back()->port()));
    }
    cluster_ = *ClusterSpec::FromLists(
        {{TaskType::kWorker, addresses}, {TaskType::kPs, {"127.0.0.1:1"}}});
    for (int i = 0; i < count; ++i) {
      workers_.push_back(std::make_unique<TestWorker>(
          TestWorker::Options{.index = i,
                              .cluster = cluster_,
                              .ops = &ops_,
                              .kernels = &kernels_,
                              .coordinator_grace = coordinator_grace_,
                              .session = session_}));
    }
  }

  void StartDispatcher(ClosureDispatcher::Options options = {}) {
    missing_ = MakeMissing();
    dispatcher_ = MakeDispatcher(options, "job", missing_.get());
  }

  std::unique_ptr<MissingTasks> MakeMissing() const {
    return std::make_unique<MissingTasks>(
        cluster_, cluster_.Tasks(TaskType::kWorker), Clock::Real());
  }

  std::unique_ptr<ClosureDispatcher> MakeDispatcher(
      ClosureDispatcher::Options options, const std::string& job_id,
      MissingTasks* missing) const {
    options.cluster = cluster_;
    std::vector<std::unique_ptr<Channel>> channels;
    for (const TaskId task : cluster_.Tasks(TaskType::kWorker)) {
      channels.push_back(Network::Grpc()->Connect(
          {.address = *cluster_.Address(task),
           .peer_task_type = "worker",
           .peer_task_index = task.index,
           .caller = {.task_type = "chief", .incarnation = RandomIdentity()},
           .job_id = job_id}));
    }
    return std::make_unique<ClosureDispatcher>(
        options, std::move(channels),
        [](const absl::Status&) { return FailureVerdict::kFailure; }, missing,
        clock_);
  }

  // Blocks until worker 0 has a coordinator or, if not `has_coordinator`, has
  // none.
  bool AwaitCoordinator(bool has_coordinator) const {
    return AwaitTrue([&] {
      return workers_[0]->service()->has_coordinator() == has_coordinator;
    });
  }

  // Adds a function that returns its only argument.
  uint32_t AddEcho() {
    GraphBuilder builder(&ops_, "echo");
    builder.AddResult(builder.Parameter("x", {DType::kFloat32, {-1}},
                                        ToAttributes({.argument = 0})));
    return AddGraph(*std::move(builder).Build());
  }

  uint32_t AddGraph(const Graph& graph) {
    return dispatcher_->AddFunction(graph.name,
                                    EncodeGraph(graph).SerializeAsString());
  }

  static ClosureWork Call(uint32_t function_id, std::vector<Tensor> tensors) {
    auto arguments = std::make_shared<ClosureArguments>();
    for (Tensor& tensor : tensors) {
      arguments->arguments.push_back({.tensors = {std::move(tensor)}});
    }
    return {.function_id = function_id, .arguments = std::move(arguments)};
  }

  HoldingClock holding_clock_;
  Clock* clock_ = Clock::Real();  // The clock of the dispatcher.
  std::vector<std::unique_ptr<PortReservation>> ports_;
  ClusterSpec cluster_;
  OpRegistry ops_;
  KernelRegistry kernels_;
  WorkerSession::Options session_;
  absl::Duration coordinator_grace_ = absl::ZeroDuration();
  std::vector<std::unique_ptr<TestWorker>> workers_;
  std::unique_ptr<MissingTasks> missing_;
  std::unique_ptr<ClosureDispatcher> dispatcher_;
};

TEST_F(ClosureDispatcherTest, ReservesIdsBeforeItUsesThem) {
  StartWorkers(1);
  absl::Status recording;
  std::vector<uint64_t> limits;
  ClosureDispatcher::Options options;
  options.closure_ids = {.first_id = 100, .record = [&](uint64_t limit) {
                           limits.push_back(limit);
                           return recording;
                         }};
  StartDispatcher(options);
  ASSERT_OK(missing_->Await(Soon(), Ignore));
  const uint32_t echo = AddEcho();
  const Tensor one = Tensor::FromValues<float>({1}, {1});
  recording = absl::DataLossError("I/O error");
  EXPECT_EQ(dispatcher_->Schedule(Call(echo, {one}), kTimeout).status(),
            recording);
  recording = absl::OkStatus();
  for (uint64_t id = 100; id < 103; ++id) {
    ASSERT_OK_AND_ASSIGN(const RemoteValue value,
                         dispatcher_->Schedule(Call(echo, {one}), kTimeout));
    EXPECT_EQ(value.closure_id(), id);
  }
  ASSERT_OK(dispatcher_->Join(Soon()));
  EXPECT_EQ(limits,
            std::vector<uint64_t>(2, 100 + ClosureIdReservation::kBlockSize));
}

TEST_F(ClosureDispatcherTest, RunsClosuresAndReturnsTheirResults) {
  StartWorkers(2);
  StartDispatcher();
  ASSERT_OK(missing_->Await(Soon(), Ignore));
  const uint32_t echo = AddEcho();
  std::vector<RemoteValue> values;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_OK_AND_ASSIGN(
        RemoteValue value,
        dispatcher_->Schedule(
            Call(echo, {Tensor::FromValues<float>({1}, {float(i)})}),
            kTimeout));
    values.push_back(value);
  }
  ASSERT_OK(dispatcher_->Join(Soon()));
  for (int i = 0; i < 1000; ++i) {
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> results,
                         dispatcher_->Fetch(values[i], Soon()));
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(results[0].scalar<float>(), float(i));
  }
  EXPECT_THAT(dispatcher_->Done(), IsOkAndHolds(true));
  EXPECT_OK(dispatcher_->EndJob(proto::JobEnd(), Soon()));
  ASSERT_OK_AND_ASSIGN(const WorkerService::JobEnd end,
                       workers_[0]->service()->AwaitJobEnd({}, Ignore));
  EXPECT_EQ(end.exit_code, 0);
}

TEST_F(ClosureDispatcherTest, AnIdleWorkerGetsAClosureFromTheCallOfSchedule) {
  clock_ = &holding_clock_;
  StartWorkers(1);
  // The heartbeat interval is long, so heartbeats do not send the closures.
  StartDispatcher({.heartbeat_interval = absl::Minutes(2),
                   .heartbeat_timeout = absl::Minutes(20)});
  ASSERT_OK(missing_->Await(Soon(), Ignore));
  const uint32_t echo = AddEcho();
  holding_clock_.Hold();
  dispatcher_->CancelAll();  // Wakes the loop.
  holding_clock_.AwaitHeld();
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK_AND_ASSIGN(
        const RemoteValue value,
        dispatcher_->Schedule(
            Call(echo, {Tensor::FromValues<float>({1}, {float(i)})}),
            kTimeout));
    EXPECT_OK(dispatcher_->Join(Soon()));
  }
}

TEST_F(ClosureDispatcherTest, LargeResultsStayUntilTheyAreFetchedOrDropped) {
  session_.inline_result_bytes_max = 16;
  session_.kept_result_bytes_max = 1000;
  StartWorkers(1);
  StartDispatcher();
  const uint32_t echo = AddEcho();
  const Tensor large = Tensor::Full(DType::kFloat32, {100}, 3);
  for (int i = 0; i < 20; ++i) {
    // The worker keeps at most two results. If results were not released, the
    // third one would be sent with the report and have no keeper.
    ASSERT_OK_AND_ASSIGN(const RemoteValue value,
                         dispatcher_->Schedule(Call(echo, {large}), kTimeout));
    ASSERT_OK(dispatcher_->Join(Soon()));
    ASSERT_TRUE(value.state()->keeper().has_value());
    ASSERT_OK_AND_ASSIGN(const auto results, dispatcher_->Fetch(value, Soon()));
    EXPECT_TRUE(BitwiseEqual(results[0], large));
    EXPECT_FALSE(value.state()->keeper().has_value());
  }
}

TEST_F(ClosureDispatcherTest, AFetchEndsWithTheConversationThatKeptTheResult) {
  session_.inline_result_bytes_max = 16;
  StartWorkers(1);
  StartDispatcher();
  const uint32_t echo = AddEcho();
  ASSERT_OK_AND_ASSIGN(
      const RemoteValue value,
      dispatcher_->Schedule(
          Call(echo, {Tensor::Full(DType::kFloat32, {100}, 3)}), kTimeout));
  ASSERT_OK(dispatcher_->Join(Soon()));
  // Simulates a suspended worker.
  SetFaults({{.point = "worker.before_fetch",
              .occurrence = 1,
              .action = FaultAction::kDelay,
              .delay = absl::Seconds(3)}});
  std::thread fetch([&] {
    EXPECT_THAT(dispatcher_->Fetch(value, Soon()),
                StatusIs(absl::StatusCode::kUnavailable,
                         AllOf(HasSubstr("worker 0"), HasSubstr("kept it"))));
  });
  EXPECT_TRUE(
      AwaitTrue([] { return FaultPointPassCount("worker.before_fetch") > 0; }));
  dispatcher_->Suspend();
  dispatcher_->RollBack({});
  dispatcher_->Resume();
  fetch.join();
  SetFaults({});
}

TEST_F(ClosureDispatcherTest, JoinReturnsAFailureAndTheNextRoundWorks) {
  StartWorkers(2);
  StartDispatcher();
  const uint32_t echo = AddEcho();
  const Tensor bad = Tensor::Scalar(1.0f);
  const Tensor good = Tensor::FromValues<float>({1}, {1});
  ASSERT_OK_AND_ASSIGN(const RemoteValue failed,
                       dispatcher_->Schedule(Call(echo, {bad}), kTimeout));
  EXPECT_THAT(dispatcher_->Join(Soon()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("closure 1 on worker")));
  EXPECT_THAT(dispatcher_->Fetch(failed, Soon()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_OK_AND_ASSIGN(const RemoteValue value,
                       dispatcher_->Schedule(Call(echo, {good}), kTimeout));
  EXPECT_OK(dispatcher_->Join(Soon()));
  EXPECT_OK(dispatcher_->Fetch(value, Soon()));
}

TEST_F(ClosureDispatcherTest, ClosuresOfAKilledWorkerRunElsewhere) {
  StartWorkers(2);
  StartDispatcher();
  ASSERT_OK(missing_->Await(Soon(), Ignore));
  const uint32_t echo = AddEcho();
  const Tensor one = Tensor::FromValues<float>({1}, {1});
  std::vector<RemoteValue> values;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 200; ++i) {
      ASSERT_OK_AND_ASSIGN(RemoteValue value,
                           dispatcher_->Schedule(Call(echo, {one}), kTimeout));
      values.push_back(value);
    }
    TestWorker& victim = *workers_[round % 2];
    if (victim.running()) {
      victim.Kill();
    } else {
      victim.Start();
    }
    TestWorker& other = *workers_[(round + 1) % 2];
    if (!other.running()) other.Start();
  }
  ASSERT_OK(dispatcher_->Join(Soon()));
  for (const RemoteValue& value : values) {
    EXPECT_OK(dispatcher_->Fetch(value, Soon()));
  }
  EXPECT_GT(dispatcher_->counters().lost_count, 0);
  EXPECT_EQ(dispatcher_->counters().finished_count, 4000);
}

TEST_F(ClosureDispatcherTest, AReturningWorkerIsUsedWhileAnotherIsStillAway) {
  StartWorkers(2);
  StartDispatcher();
  ASSERT_OK(missing_->Await(Soon(), Ignore));
  const uint32_t echo = AddEcho();
  workers_[0]->Kill();
  workers_[1]->Kill();
  ASSERT_OK_AND_ASSIGN(
      const RemoteValue value,
      dispatcher_->Schedule(Call(echo, {Tensor::FromValues<float>({1}, {1})}),
                            kTimeout));
  EXPECT_THAT(dispatcher_->Join(Clock::Real()->Now() + absl::Milliseconds(50)),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("Join has waited"),
                             HasSubstr("worker 0"), HasSubstr("worker 1"))));
  workers_[1]->Start();
  EXPECT_OK(dispatcher_->Join(Soon()));
  EXPECT_OK(dispatcher_->Fetch(value, Soon()));
}

TEST_F(ClosureDispatcherTest, StartUpNamesTheWorkersThatDidNotConnect) {
  StartWorkers(2);
  workers_[1]->Kill();
  StartDispatcher();
  EXPECT_THAT(
      missing_->Await(Clock::Real()->Now() + absl::Milliseconds(200), Ignore),
      StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("worker 1")));
}

TEST_F(ClosureDispatcherTest, AWorkerOfAnotherClusterRefuses) {
  StartWorkers(1);
  cluster_ = *ClusterSpec::FromLists(
      {{TaskType::kWorker, {absl::StrCat("127.0.0.1:", ports_[0]->port())}},
       {TaskType::kPs, {"127.0.0.1:2"}}});
  StartDispatcher();
  EXPECT_THAT(
      missing_->Await(Soon(), Ignore),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("127.0.0.1:1"), HasSubstr("127.0.0.1:2"))));
}

TEST_F(ClosureDispatcherTest, AnAbortWakesAllWaitingCalls) {
  StartWorkers(1);
  StartDispatcher();
  ASSERT_OK(missing_->Await(Soon(), Ignore));
  const uint32_t echo = AddEcho();
  workers_[0]->Kill();
  ASSERT_OK_AND_ASSIGN(
      const RemoteValue value,
      dispatcher_->Schedule(Call(echo, {Tensor::FromValues<float>({1}, {1})}),
                            kTimeout));
  dispatcher_->Abort(absl::DataLossError("ps 1 is lost"));
  const auto is_lost =
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("ps 1 is lost"));
  EXPECT_THAT(dispatcher_->Fetch(value, Soon()), is_lost);
  EXPECT_THAT(dispatcher_->Join(Soon()), is_lost);
  EXPECT_THAT(dispatcher_->Schedule({.function_id = echo}, kTimeout), is_lost);
}

TEST_F(ClosureDispatcherTest, AWorkerWithoutACoordinatorRequestsARestart) {
  StartWorkers(1);
  const absl::Status status =
      workers_[0]
          ->service()
          ->AwaitJobEnd({.coordinator = {.timeout = absl::Milliseconds(20)}},
                        Ignore)
          .status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded,
                               HasSubstr("waiting for the coordinator: none "
                                         "connected")));
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kRestartMe);
}

TEST_F(ClosureDispatcherTest, AWorkerDetectsTheLossOfItsCoordinator) {
  StartWorkers(1);
  StartDispatcher();
  ASSERT_OK(missing_->Await(Soon(), Ignore));
  dispatcher_.reset();
  EXPECT_THAT(workers_[0]->service()->AwaitJobEnd(
                  {.exit_when_coordinator_lost = true}, Ignore),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("the coordinator is lost")));
}

TEST_F(ClosureDispatcherTest, AWorkerNamesItsCoordinatorToASecondOne) {
  StartWorkers(1);
  StartDispatcher({.coordinator = "chief 0 on host h, process 1"});
  ASSERT_OK(missing_->Await(Soon(), Ignore));
  const std::unique_ptr<MissingTasks> missing = MakeMissing();
  const auto second = MakeDispatcher({}, "another", missing.get());
  EXPECT_THAT(missing->Await(Soon(), Ignore),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("works for chief 0 on host h, process 1")));
}

TEST_F(ClosureDispatcherTest, SaysWhereTheClosuresOfALostWorkerGo) {
  const std::pair<int, std::string> cases[] = {
      {2, "closures go to other workers"},
      {1, "closures wait for a worker: no other is left"}};
  for (const auto& [worker_count, words] : cases) {
    workers_.clear();
    dispatcher_.reset();
    StartWorkers(worker_count);
    StartDispatcher();
    ASSERT_OK(missing_->Await(Soon(), Ignore));
    const absl::Time start = absl::Now();
    workers_[0].reset();
    std::string logged;
    EXPECT_TRUE(AwaitTrue([&] {
      for (const LogRecord& record : ReadRecentProblems().records) {
        const bool is_loss = record.time >= start &&
                             absl::StrContains(record.message, "is lost: ");
        if (is_loss) logged = record.message;
      }
      return !logged.empty();
    }));
    EXPECT_THAT(logged, AllOf(HasSubstr("worker 0"), HasSubstr(words)));
  }
}

TEST_F(ClosureDispatcherTest, AFailedJobEndsWithoutItsLostWorker) {
  StartWorkers(2);
  StartDispatcher();
  ASSERT_OK(missing_->Await(Soon(), Ignore));
  workers_[1].reset();
  proto::JobEnd end;
  end.set_exit_code(1);
  const absl::Time deadline = Clock::Real()->Now() + absl::Minutes(5);
  EXPECT_THAT(
      dispatcher_->EndJob(end, deadline),
      StatusIs(absl::StatusCode::kDeadlineExceeded,
               AllOf(HasSubstr("worker 1"), Not(HasSubstr("worker 0")))));
  EXPECT_LT(Clock::Real()->Now(), deadline - absl::Minutes(4));
}

TEST_F(ClosureDispatcherTest, ACoordinatorThatWithdrawsLeavesItsWorkersFree) {
  coordinator_grace_ = absl::Hours(1);
  StartWorkers(1);
  StartDispatcher();
  ASSERT_OK(missing_->Await(Soon(), Ignore));
  dispatcher_->Withdraw("another has the cluster", Soon());
  const std::unique_ptr<MissingTasks> missing = MakeMissing();
  const auto second = MakeDispatcher({}, "another", missing.get());
  EXPECT_OK(missing->Await(Soon(), Ignore));
}

TEST_F(ClosureDispatcherTest, AWorkerThatIsAboutToAcceptIsReleasedToo) {
  coordinator_grace_ = absl::Hours(1);
  StartWorkers(1);
  for (int round = 0; round < 20; ++round) {
    const std::unique_ptr<MissingTasks> missing = MakeMissing();
    const auto dispatcher =
        MakeDispatcher({}, absl::StrCat("job ", round), missing.get());
    // The acceptance has not been received yet.
    ASSERT_TRUE(AwaitCoordinator(true)) << missing->Describe();
    dispatcher->Withdraw("another has the cluster", Soon());
  }
  StartDispatcher();
  EXPECT_OK(missing_->Await(Soon(), Ignore));
}

TEST_F(ClosureDispatcherTest, AWorkerWaitsForItsDisconnectedCoordinator) {
  coordinator_grace_ = absl::Hours(1);
  StartWorkers(1);
  StartDispatcher();
  ASSERT_OK(missing_->Await(Soon(), Ignore));
  dispatcher_.reset();
  ASSERT_TRUE(AwaitCoordinator(false));
  const std::unique_ptr<MissingTasks> missing = MakeMissing();
  const auto second = MakeDispatcher({}, "another", missing.get());
  EXPECT_THAT(
      missing->Await(Clock::Real()->Now() + absl::Seconds(1), Ignore),
      StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("disconnected")));
  StartDispatcher();
  EXPECT_OK(missing_->Await(Soon(), Ignore));
}

TEST_F(ClosureDispatcherTest, ANewCoordinatorTakesOverFromALostOne) {
  StartWorkers(1);
  StartDispatcher();
  ASSERT_OK(missing_->Await(Soon(), Ignore));
  dispatcher_.reset();
  StartDispatcher();
  ASSERT_OK(missing_->Await(Soon(), Ignore));
  const uint32_t echo = AddEcho();
  ASSERT_OK(dispatcher_->Schedule(
      Call(echo, {Tensor::FromValues<float>({1}, {1})}), kTimeout));
  EXPECT_OK(dispatcher_->Join(Soon()));
}

}  // namespace
}  // namespace muster
