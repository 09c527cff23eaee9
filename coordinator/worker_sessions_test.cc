#include "coordinator/worker_sessions.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/missing_tasks.h"
#include "common/net/cluster/task_id.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/network.h"
#include "common/net/rpc/reconnecting_stream.h"
#include "common/net/rpc/tick_loop.h"
#include "common/net/status/status_report.h"
#include "coordinator/closure_queue.h"
#include "coordinator/worker_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/worker.pb.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using State = TaskStatus::State;

class NoEvents final : public ReconnectingStream::Listener {
 public:
  Message OnDial(int, uint64_t) override { return {}; }
  void OnMessage(int, uint64_t, ReceivedMessage) override {}
  void OnEnd(int, uint64_t, const absl::Status&) override {}
};

// Two workers without network traffic: the test does not advance their streams.
class WorkerSessionsTest : public testing::Test {
 protected:
  WorkerSessionsTest()
      : cluster_(ClusterSpec::FromLists(
                     {{TaskType::kWorker, {"127.0.0.1:1", "127.0.0.1:2"}},
                      {TaskType::kPs, {"127.0.0.1:3"}}})
                     .value()),
        missing_(cluster_, cluster_.Tasks(TaskType::kWorker), &clock_),
        queue_({.worker_count = 2}),
        sessions_({.heartbeat_timeout = absl::Seconds(5),
                   .handshake_timeout = absl::Seconds(10),
                   .retry_pause = {.initial = absl::Seconds(1),
                                   .maximum = absl::Seconds(8)},
                   .trouble_report_interval = absl::Seconds(10)},
                  &queue_, &missing_, &timeline_, &clock_) {
    for (const TaskId task : cluster_.Tasks(TaskType::kWorker)) {
      streams_.push_back(std::make_unique<ReconnectingStream>(
          ReconnectingStream::Options{.peer = task.index},
          Network::Grpc()->Connect({.address = *cluster_.Address(task),
                                    .peer_task_type = "worker",
                                    .peer_task_index = task.index}),
          &listener_, &loop_));
      sessions_.AddWorker(task, streams_.back().get());
    }
  }

  WorkerRecord* record(int worker) { return &sessions_.records()[worker]; }

  void Open(int worker, uint64_t session = 1) {
    sessions_.NoteDial(worker, session);
    proto::SessionAcceptance acceptance;
    acceptance.set_incarnation(100 + worker);
    sessions_.NoteAcceptance(record(worker), acceptance,
                             /*has_functions=*/false);
  }

  std::vector<State> States() const {
    StatusReport report;
    sessions_.AddStatus(cluster_, &report);
    std::vector<State> states;
    for (const TaskStatus& task : report.tasks) states.push_back(task.state);
    return states;
  }

  SimulatedClock clock_;
  const ClusterSpec cluster_;
  MissingTasks missing_;
  NoEvents listener_;
  TickLoop loop_{absl::Seconds(1),
                 [](const TickLoop::Turn&) { return absl::InfiniteFuture(); },
                 &clock_};
  std::vector<std::unique_ptr<ReconnectingStream>> streams_;
  ClosureQueue queue_;
  RunTimeline timeline_{&clock_};
  WorkerSessions sessions_;
};

TEST_F(WorkerSessionsTest, AnAcceptedWorkerTakesClosures) {
  queue_.Add({});
  EXPECT_FALSE(queue_.HasClosuresFor(1));
  Open(1);
  EXPECT_TRUE(queue_.HasClosuresFor(1));
  EXPECT_THAT(States(),
              testing::ElementsAre(State::kConnecting, State::kConnected));
}

TEST_F(WorkerSessionsTest, ClosuresOfALostWorkerAreQueuedAgain) {
  Open(0);
  queue_.Add({});
  std::vector<ClosureQueue::Taken> taken;
  queue_.Take(0, 1, &taken);
  sessions_.NoteEnd(absl::UnavailableError("gone"), record(0));
  EXPECT_EQ(queue_.in_flight_count(), 0);
  EXPECT_EQ(queue_.queued_count(), 1);
  EXPECT_EQ(sessions_.lost_count(), 1);
  EXPECT_THAT(States(), testing::ElementsAre(State::kLost, State::kConnecting));
  EXPECT_THAT(sessions_.Describe(), HasSubstr("gone"));

  Open(0, 2);
  EXPECT_EQ(sessions_.recovered_count(), 1);
}

TEST_F(WorkerSessionsTest, ARenewedWorkerIsNotLost) {
  Open(0);
  sessions_.RenewAll();
  EXPECT_THAT(States(),
              testing::ElementsAre(State::kConnected, State::kConnecting));
  Open(0, 2);
  EXPECT_EQ(sessions_.lost_count(), 0);
  EXPECT_EQ(sessions_.recovered_count(), 0);
}

TEST_F(WorkerSessionsTest, AWorkerThatCannotReachAServerIsPaused) {
  Open(0);
  queue_.Add({});
  sessions_.NoteTrouble(absl::UnavailableError("no server"), /*is_news=*/true,
                        record(0));
  EXPECT_FALSE(queue_.HasClosuresFor(0));
  EXPECT_GT(sessions_.NextEndOfPause(clock_.Now()), clock_.Now());
  EXPECT_THAT(sessions_.Describe(), HasSubstr("no server"));
  sessions_.EndPauses();
  EXPECT_EQ(sessions_.NextEndOfPause(clock_.Now()), absl::InfiniteFuture());
}

TEST_F(WorkerSessionsTest, TheOnlyWorkerCannotLeave) {
  Open(0);
  EXPECT_THAT(sessions_.BeginLeaving(0, [] {}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("the only worker that is connected")));
  EXPECT_THAT(sessions_.BeginLeaving(1, [] {}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("not connected")));
  Open(1);
  EXPECT_OK(sessions_.BeginLeaving(0, [] {}));
  queue_.Add({});
  EXPECT_FALSE(queue_.HasClosuresFor(0));
  EXPECT_TRUE(queue_.HasClosuresFor(1));
}

TEST_F(WorkerSessionsTest, AllHaveEndedWhenAllWereTold) {
  EXPECT_TRUE(sessions_.AllPresentHaveEnded());
  Open(0);
  EXPECT_FALSE(sessions_.AllPresentHaveEnded());
  sessions_.NoteLast(clock_.Now(), record(0));
  EXPECT_TRUE(sessions_.AllPresentHaveEnded());
  EXPECT_FALSE(sessions_.AllHaveEnded());
  sessions_.NoteLast(clock_.Now(), record(1));
  EXPECT_TRUE(sessions_.AllHaveEnded());
}

}  // namespace
}  // namespace muster
