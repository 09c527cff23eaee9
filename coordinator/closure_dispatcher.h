#ifndef COORDINATOR_CLOSURE_DISPATCHER_H_
#define COORDINATOR_CLOSURE_DISPATCHER_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/core/base/clock.h"
#include "common/core/tensor/tensor.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/missing_tasks.h"
#include "common/net/rpc/backoff.h"
#include "common/net/rpc/channel.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/service.h"
#include "coordinator/closure_ids.h"
#include "coordinator/closure_queue.h"
#include "coordinator/release_list.h"
#include "coordinator/remote_value.h"
#include "coordinator/report_intake.h"
#include "coordinator/worker_lane.h"
#include "proto/worker.pb.h"

namespace muster {

// Keeps a conversation with every worker going and moves closures between the
// ClosureQueue and the workers: the part of scheduling that has threads,
// streams and time.
//
// One thread opens streams, sends and counts heartbeats; what workers report is
// taken in on the transport's threads. A worker that is lost is dialled again
// for ever and used as soon as it is back; the others never wait for it.
//
// Thread-safe.
class ClosureDispatcher {
 public:
  struct Options {
    ClusterSpec cluster;
    // This process, as workers name it to people: "chief 0 on host h0, process
    // 4711".
    std::string coordinator;
    uint64_t job_seed = 0;
    ClosureQueue::Options queue;  // worker_count is filled in.
    absl::Duration heartbeat_interval = absl::Milliseconds(500);
    // A worker silent for longer is lost, whatever its connection says.
    absl::Duration heartbeat_timeout = absl::Seconds(5);
    // For the answer to an opening.
    absl::Duration handshake_timeout = absl::Seconds(10);
    // A worker that cannot reach a parameter server is given nothing for so
    // long; its closures go to others.
    BackoffOptions retry_pause = {.initial = absl::Milliseconds(200),
                                  .maximum = absl::Seconds(10)};
    // A line about it comes at most so often for each worker.
    absl::Duration trouble_report_interval = absl::Seconds(10);
    BackoffOptions reconnect = {.initial = absl::Milliseconds(20),
                                .maximum = absl::Milliseconds(200)};
  };

  // One channel for each worker, by index. `missing` is told who has been met
  // and who refuses; it and `clock` are borrowed.
  ClosureDispatcher(const Options& options,
                    std::vector<std::unique_ptr<Channel>> channels,
                    FailureJudge judge, MissingTasks* missing, Clock* clock);

  // Drops all conversations. Whoever waits for a closure is woken.
  ~ClosureDispatcher();

  ClosureDispatcher(const ClosureDispatcher&) = delete;
  ClosureDispatcher& operator=(const ClosureDispatcher&) = delete;

  // Workers are told when they first need it. Returns the id.
  uint32_t AddFunction(absl::string_view name, std::string serialized_graph)
      ABSL_LOCKS_EXCLUDED(mutex_);
  uint32_t AddIterator(IteratorRecord iterator) ABSL_LOCKS_EXCLUDED(mutex_);

  // Queues a closure. Waits while the queue is full, or while an earlier
  // failure is being cleaned up.
  //   kDeadlineExceeded  says what the queue is waiting for
  //   any                an earlier closure failed; this call has taken the
  //                      failure, as Join() would have
  absl::StatusOr<RemoteValue> Schedule(ClosureWork work, absl::Time deadline)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits until nothing is queued or running, and takes the failure, if any.
  //   kDeadlineExceeded  says what it waits for
  absl::Status Join(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether nothing is queued or running. Does not wait; takes the failure when
  // what came after it has been cleaned up.
  absl::StatusOr<bool> Done() ABSL_LOCKS_EXCLUDED(mutex_);

  void Cancel(uint64_t closure_id) ABSL_LOCKS_EXCLUDED(mutex_);
  void CancelAll() ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits for the closure, and fetches its results if the worker kept them.
  //   kDeadlineExceeded  says what it waits for
  //   kUnavailable       the worker that kept the results is lost
  //   any                the closure failed
  absl::StatusOr<std::vector<Tensor>> Fetch(const RemoteValue& value,
                                            absl::Time deadline)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // ---- Checkpoints and rollbacks: see server_recovery.h.

  // Hands nothing out any more, has what is unstarted handed back, and waits
  // until nothing is under way. Undrain() ends that; each call of this one that
  // returned OK needs one.
  //   kDeadlineExceeded  says what it waits for
  //   kAborted           Suspend() was called, or Abort()
  absl::Status Drain(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  void Undrain() ABSL_LOCKS_EXCLUDED(mutex_);

  // Hands nothing out until Resume(), without waiting for anybody. Nothing is
  // settled meanwhile.
  void Suspend() ABSL_LOCKS_EXCLUDED(mutex_);
  void Resume() ABSL_LOCKS_EXCLUDED(mutex_);

  struct RollbackWork {
    // Closures whose effects stay.
    ClosureIds kept;
    // Servers are in this generation now.
    uint64_t generation = 0;
    // Not OK: all closures that are queued or under way are cancelled, and this
    // is the failure that is to be taken. OK: they stay in the queue.
    absl::Status failure;
  };
  // While suspended. Workers get new sessions, what was under way goes back to
  // the queue, and the closures whose effects are undone are returned.
  ClosureIds RollBack(const RollbackWork& work) ABSL_LOCKS_EXCLUDED(mutex_);

  // Closures whose effects are there.
  ClosureIds succeeded() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_aborted() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Fails everything, now and for good.
  void Abort(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  // Tells every worker that the job is over. Workers that cannot be reached
  // until `deadline` are named.
  absl::Status EndJob(const proto::JobEnd& end, absl::Time deadline)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Lets the workers that are there go to another coordinator. Does not wait
  // for the others.
  void Withdraw(absl::string_view reason, absl::Time deadline)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Who holds what, and who is lost, in one line.
  std::string Describe() const ABSL_LOCKS_EXCLUDED(mutex_);

  struct Counters {
    int64_t finished_count = 0;
    int64_t requeued_count = 0;   // Closures run again elsewhere.
    int64_t lost_count = 0;       // Conversations that ended badly.
    int64_t recovered_count = 0;  // Workers that came back.
    absl::Duration busy;          // Time that workers spent in closures.
  };
  Counters counters() const ABSL_LOCKS_EXCLUDED(mutex_);

  int worker_count() const { return static_cast<int>(lanes_.size()); }
  // 0 while never met.
  uint64_t worker_incarnation(int worker) const ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t low_water_mark() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Observer;
  struct Action;

  // On the transport's threads.
  void OnReport(int worker, uint64_t session, ReceivedMessage message)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnStreamDone(int worker, uint64_t session, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(mutex_);

  void Accept(WorkerLane* lane, const proto::SessionAcceptance& acceptance)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void UseIfReady(WorkerLane* lane) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A worker cannot be opened a session with, for a reason that may be one of
  // those that no later try mends.
  void NoteRefusal(const WorkerLane& lane, const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A worker that is there has failed closures because it cannot reach others.
  void NoteTrouble(WorkerLane* lane, const absl::Status& trouble)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the session, if there is one, and has the worker dialled again.
  void Lose(WorkerLane* lane, const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // What a worker has kept.
  //   kUnavailable  the conversation in which it did has ended
  absl::StatusOr<std::vector<Tensor>> FetchFrom(
      const RemoteValueState::Keeper& keeper, uint64_t closure_id,
      absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether that conversation goes on.
  bool IsOpen(const RemoteValueState::Keeper& keeper) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  void RunLoop() ABSL_LOCKS_EXCLUDED(mutex_);
  void Tick(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Plan(absl::Time now, std::vector<Action>* actions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool PlanCommand(absl::Time now, WorkerLane* lane, Action* action)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Time NextWakeUp() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void Open(const Action& action) ABSL_LOCKS_EXCLUDED(mutex_);
  void SendCommand(Action* action) ABSL_LOCKS_EXCLUDED(mutex_);

  std::string DescribeLocked() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status TimedOut(absl::string_view what, absl::Duration waited) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  // Gives the worker a new session; the old one ends when the new one stands,
  // so that the worker does not take its coordinator for lost.
  void Renew(WorkerLane* lane) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  bool IsDrained() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return queue_.in_flight_count() == 0 || is_suspended_ || is_aborted_ ||
           stopping_;
  }
  bool MayWake() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return wake_ || stopping_;
  }
  bool IsSettled() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return (queue_.idle() && !is_suspended_) || is_aborted_ || stopping_;
  }
  bool MaySchedule() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return queue_.failing() ? IsSettled() : (queue_.HasRoom() || stopping_);
  }
  bool AllLanesEnded() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return ended_lane_count_ == worker_count();
  }
  bool AllOpenLanesEnded() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return std::none_of(lanes_.begin(), lanes_.end(),
                        [](const WorkerLane& lane) {
                          return lane.state == WorkerLane::State::kOpen;
                        });
  }
  bool NoStreamsOfEndedLanes() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return std::none_of(lanes_.begin(), lanes_.end(),
                        [](const WorkerLane& lane) {
                          return lane.state == WorkerLane::State::kEnded &&
                                 lane.stream != nullptr;
                        });
  }
  bool NoObserversLeft() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return observer_count_ == 0;
  }

  const Options options_;
  const FailureJudge judge_;
  Clock* const clock_;
  const std::shared_ptr<ReleaseList> releases_;
  MissingTasks* const missing_;

  mutable absl::Mutex mutex_;
  ClosureQueue queue_ ABSL_GUARDED_BY(mutex_);
  // The vector is constant; the lanes, but for their channels, are guarded.
  std::vector<WorkerLane> lanes_;
  std::vector<FunctionRecord> functions_ ABSL_GUARDED_BY(mutex_);
  std::vector<IteratorRecord> iterators_ ABSL_GUARDED_BY(mutex_);
  // Streams of lost sessions, to be cancelled.
  std::vector<std::shared_ptr<Stream>> doomed_ ABSL_GUARDED_BY(mutex_);
  bool wake_ ABSL_GUARDED_BY(mutex_) = true;
  // A worker could have taken more when the dispatcher last looked.
  bool hungry_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_aborted_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<proto::JobEnd> job_end_ ABSL_GUARDED_BY(mutex_);
  int drain_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_suspended_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  int ended_lane_count_ ABSL_GUARDED_BY(mutex_) = 0;
  int observer_count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time next_tick_ ABSL_GUARDED_BY(mutex_);
  bool heartbeat_due_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration busy_ ABSL_GUARDED_BY(mutex_);
  int64_t lost_count_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t recovered_count_ ABSL_GUARDED_BY(mutex_) = 0;

  std::thread thread_;  // Constant after construction.
};

}  // namespace muster

#endif  // COORDINATOR_CLOSURE_DISPATCHER_H_
