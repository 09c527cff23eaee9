#ifndef COORDINATOR_CLOSURE_DISPATCHER_H_
#define COORDINATOR_CLOSURE_DISPATCHER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/core/base/backoff.h"
#include "common/core/system/clock.h"
#include "common/core/system/duration_histogram.h"
#include "common/core/tensor/tensor.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/missing_tasks.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/version.h"
#include "common/net/rpc/channel.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/reconnecting_stream.h"
#include "common/net/rpc/tick_loop.h"
#include "common/net/status/run_timeline.h"
#include "common/net/status/status_report.h"
#include "coordinator/closure_id_reservation.h"
#include "coordinator/closure_ids.h"
#include "coordinator/closure_queue.h"
#include "coordinator/definitions.h"
#include "coordinator/release_list.h"
#include "coordinator/remote_value.h"
#include "coordinator/report_intake.h"
#include "coordinator/shared_batches.h"
#include "coordinator/worker_record.h"
#include "coordinator/worker_sessions.h"

namespace muster {

struct IteratorRecord;
struct PlannedCommand;
namespace proto {
class JobEnd;
class WorkerReport;
}  // namespace proto

// Moves closures between the ClosureQueue and the workers. This class is the
// part of scheduling that uses threads, streams and clocks.
//
// The thread that makes a command possible also sends it: the thread that
// schedules a closure for an idle worker, or the thread of the transport that
// delivers a report. The loop thread of this object counts heartbeats. It also
// sends commands while another thread is already sending, or when waiting for a
// fuller message is worthwhile. A lost worker is dialled until this object is
// destroyed, and gets closures again when it has reconnected. The other workers
// do not wait for it.
//
// Thread-safe.
class ClosureDispatcher : private ReconnectingStream::Listener {
 public:
  struct Options {
    ClusterSpec cluster;
    // A worker of another version refuses the session.
    std::string version = std::string(kVersion);
    // The name of this process in messages of workers: "chief 0 on host h0,
    // process 4711".
    std::string coordinator;
    uint64_t job_seed = 0;
    // The constructor sets worker_count and first_id.
    ClosureQueue::Options queue;
    ClosureIdReservation::Options closure_ids;
    // The generation of exchanges with the servers at the start.
    uint64_t generation = 0;
    // As in proto::SessionOpening. `serving_tasks` is not used if there is one
    // copy.
    int server_copy_count = 1;
    std::function<std::vector<int>()> serving_tasks;
    // How long the workers wait for another coordinator of the job after the
    // loss of this process; 0 if none continues the job.
    absl::Duration coordinator_return_timeout = absl::ZeroDuration();
    absl::Duration heartbeat_interval = absl::Milliseconds(500);
    // A worker that is silent for longer is lost, even if its connection is
    // open.
    absl::Duration heartbeat_timeout = absl::Seconds(5);
    // Timeout for the response to an opening.
    absl::Duration handshake_timeout = absl::Seconds(10);
    // How long a worker that cannot reach a parameter server gets no closures.
    // Other workers run its closures.
    BackoffOptions retry_pause = {.initial = absl::Milliseconds(200),
                                  .maximum = absl::Seconds(10)};
    // Minimum time between two log lines about such a worker.
    absl::Duration trouble_report_interval = absl::Seconds(10);
    BackoffOptions reconnect = {.initial = absl::Milliseconds(20),
                                .maximum = absl::Milliseconds(200)};
  };

  // `channels` has one channel for each worker, by index. `missing` records
  // which workers have connected and which refuse. `missing` and `clock` are
  // borrowed.
  ClosureDispatcher(const Options& options,
                    std::vector<std::unique_ptr<Channel>> channels,
                    FailureJudge judge, MissingTasks* missing, Clock* clock);

  // Ends all sessions. Calls that wait for a closure return kCancelled.
  ~ClosureDispatcher() override;

  ClosureDispatcher(const ClosureDispatcher&) = delete;
  ClosureDispatcher& operator=(const ClosureDispatcher&) = delete;

  // Adds a function or an iterator, which is sent to each worker when the
  // worker first needs it. Returns its id.
  uint32_t AddFunction(absl::string_view name, std::string serialized_graph)
      ABSL_LOCKS_EXCLUDED(mutex_);
  uint32_t AddIterator(IteratorRecord iterator) ABSL_LOCKS_EXCLUDED(mutex_);

  // From now on, messages to workers that have mapped the memory of `batches`
  // refer to its tensors instead of containing them. `batches` is borrowed.
  void SetSharedBatches(const SharedBatches* batches) {
    shared_batches_.store(batches, std::memory_order_release);
  }

  // Queues a closure. Blocks for at most `timeout` while the queue is full, or
  // while closures end after an earlier failure.
  //   kDeadlineExceeded  names what the queue waits for
  //   any                an earlier closure failed; this call has taken the
  //                      failure, as Join() would have. Or the ids of closures
  //                      could not be reserved
  absl::StatusOr<RemoteValue> Schedule(ClosureWork work, absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Blocks until no closure is queued or running, and takes the failure, if
  // any.
  //   kDeadlineExceeded  names what it waits for
  absl::Status Join(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns true if no closure is queued or running. Does not block. Takes the
  // failure, if any, when the closures after it have ended.
  absl::StatusOr<bool> Done() ABSL_LOCKS_EXCLUDED(mutex_);

  void Cancel(uint64_t closure_id) ABSL_LOCKS_EXCLUDED(mutex_);
  void CancelAll() ABSL_LOCKS_EXCLUDED(mutex_);

  // Blocks until the closure has finished. Fetches its results if the worker
  // kept them.
  //   kDeadlineExceeded  names what it waits for
  //   kUnavailable       the worker that kept the results is lost
  //   any                the closure failed
  absl::StatusOr<std::vector<Tensor>> Fetch(const RemoteValue& value,
                                            absl::Time deadline)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // ---- Checkpoints and rollbacks: see server_recovery.h.

  // Stops sending closures, recalls unstarted ones, and blocks until none is in
  // flight. Undrain() resumes sending. Each call of Drain() that returned OK
  // needs one call of Undrain().
  //   kDeadlineExceeded  names what it waits for
  //   kAborted           Suspend() was called, or Abort()
  absl::Status Drain(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  void Undrain() ABSL_LOCKS_EXCLUDED(mutex_);

  // As ClosureQueue::LimitLowWaterMark().
  void LimitLowWaterMark(uint64_t limit) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    queue_.LimitLowWaterMark(limit);
  }
  // As ClosureQueue::ContinueAt(). Gives all workers new sessions, because a
  // session requires that ids increase.
  void ContinueAt(uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  // As ClosureQueue::HasFinished().
  bool HasFinished(uint64_t id) const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return queue_.HasFinished(id);
  }
  // As ClosureQueue::BeginRound().
  void BeginRound(int applied_count) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    queue_.BeginRound(applied_count);
  }
  // Sets the generation of exchanges with the servers, in which all further
  // sessions of workers are opened. Requires that no closure is scheduled.
  void SetGeneration(uint64_t generation) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the id of the next closure.
  uint64_t next_closure_id() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return queue_.next_id();
  }

  // Sends no closures until Resume(). Does not wait for workers. While
  // suspended, Join() and Done() do not report completion.
  void Suspend() ABSL_LOCKS_EXCLUDED(mutex_);
  void Resume() ABSL_LOCKS_EXCLUDED(mutex_);

  struct RollbackWork {
    // Closures whose effects are kept.
    ClosureIds kept;
    // The generation of the parameter servers after the rollback.
    uint64_t generation = 0;
    // If not OK, all closures that are queued or in flight are cancelled, and
    // this failure can be taken. If OK, they stay in the queue.
    absl::Status failure;
  };
  // Requires that sending is suspended. Gives all workers new sessions, and
  // returns closures in flight to the queue. Returns the closures whose effects
  // are undone.
  ClosureIds RollBack(const RollbackWork& work) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the closures whose effects are in the variables.
  ClosureIds succeeded() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return queue_.succeeded();
  }
  bool is_aborted() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return is_aborted_;
  }
  // True between Suspend() and Resume().
  bool is_suspended() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return is_suspended_;
  }
  // Returns the argument of Abort(), or OK before that call.
  absl::Status why_aborted() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return why_aborted_;
  }

  // Sends no more closures to `worker`, lets it finish those that it runs, and
  // tells it that its part of the job has ended, so that its process exits with
  // status 0. Calls `on_left` when the session of the worker has ended, on a
  // thread that must not block. The worker does not take part in this job
  // again.
  //   kFailedPrecondition  it is not connected, or no other worker is left; the
  //                        message says how to proceed. `on_left` is not called
  absl::Status DrainWorker(int worker, absl::AnyInvocable<void()> on_left)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Fails all present and future closures.
  void Abort(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  // Tells every worker that the job has ended. Waits for connected workers
  // until `deadline`, and for lost workers at most for a few seconds. The error
  // names the workers that were not notified.
  absl::Status EndJob(const proto::JobEnd& end, absl::Time deadline)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Releases the connected workers, and those that are about to accept a
  // session, for another coordinator. Does not wait for other workers.
  void Withdraw(absl::string_view reason, absl::Time deadline)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Adds the queue and a TaskStatus for each worker.
  void AddStatus(StatusReport* report) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns one line that says which closures each worker holds and which
  // workers are lost.
  std::string Describe() const ABSL_LOCKS_EXCLUDED(mutex_);

  struct Counters {
    int64_t finished_count = 0;
    int64_t requeued_count = 0;   // Closures returned to the queue.
    int64_t lost_count = 0;       // Sessions that ended with an error.
    int64_t recovered_count = 0;  // Workers that have reconnected.
    absl::Duration busy;          // Time that workers spent in closures.
    int64_t queued_count = 0;     // At present.
    int64_t in_flight_count = 0;  // At present.
  };
  Counters counters() const ABSL_LOCKS_EXCLUDED(mutex_);
  // What has happened to the tasks of the job.
  RunTimeline& timeline() { return timeline_; }
  const RunTimeline& timeline() const { return timeline_; }

  // Returns the durations of the steps of a function on the workers. For steps
  // shorter than a worker's report interval, counts the mean of the steps in
  // one report.
  DurationHistogram StepDurations(uint32_t function_id) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // True if the worker has refused a session because its cluster differs from
  // that of this task. Such a worker exits by itself.
  bool HasRefused(int worker) const ABSL_LOCKS_EXCLUDED(mutex_);

  int worker_count() const { return static_cast<int>(streams_.size()); }
  // Returns 0 if the worker has never accepted a session.
  uint64_t worker_incarnation(int worker) const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return sessions_.records()[worker].incarnation;
  }
  uint64_t low_water_mark() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return queue_.low_water_mark();
  }

 private:
  Message OnDial(int worker, uint64_t session) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnMessage(int worker, uint64_t session, ReceivedMessage message) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnEnd(int worker, uint64_t session, const absl::Status& why) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Processes a report of a worker. An error means that the session must end.
  absl::Status TakeIn(const proto::WorkerReport& report,
                      absl::Span<const Tensor> tensors, WorkerRecord* record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // True if the session that keeps the results is still open.
  bool IsOpen(const RemoteValueState::Keeper& keeper) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  Channel& channel(int worker) const { return streams_[worker]->channel(); }
  absl::Time TakeTurn(const TickLoop::Turn& turn) ABSL_LOCKS_EXCLUDED(mutex_);
  // Wakes the loop if a worker could take what has been queued.
  void WakeForQueued() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sends all commands that are ready, on this thread or soon on the thread of
  // the loop.
  void Dispatch() ABSL_LOCKS_EXCLUDED(sending_mutex_, mutex_);
  void SendCommands(const TickLoop::Turn& turn)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sending_mutex_) ABSL_LOCKS_EXCLUDED(mutex_);
  // Records whether the worker is idle, and whether it can take more closures.
  void NoteCapacity(const WorkerRecord& record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the commands to send. The caller sends them without mutex_.
  std::vector<PlannedCommand> PlanCommands(const TickLoop::Turn& turn)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendCommand(PlannedCommand* command)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sending_mutex_) ABSL_LOCKS_EXCLUDED(mutex_);
  // Blocks until `condition` holds. Returns false at the deadline.
  bool Await(bool (ClosureDispatcher::*condition)() const, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return clock_->AwaitWithDeadline(&mutex_, absl::Condition(this, condition),
                                     deadline);
  }

  std::string DescribeLocked() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status TimedOut(absl::string_view what, absl::Duration waited) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  bool IsDrained() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return queue_.in_flight_count() == 0 || is_suspended_ || is_aborted_ ||
           is_stopping_;
  }
  bool IsSettled() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return (queue_.idle() && !is_suspended_) || is_aborted_ || is_stopping_;
  }
  bool MaySchedule() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return queue_.failing() ? IsSettled() : (queue_.HasRoom() || is_stopping_);
  }
  bool AllPresentWorkersEnded() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return sessions_.AllPresentHaveEnded();
  }
  bool AllWorkersEnded() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return sessions_.AllHaveEnded();
  }

  const Options options_;
  const std::vector<TaskId> tasks_;  // By worker.
  const FailureJudge judge_;
  Clock* const clock_;
  const std::shared_ptr<ReleaseList> releases_;
  std::atomic<const SharedBatches*> shared_batches_{nullptr};

  TickLoop loop_;
  // By worker. Constant after construction.
  std::vector<std::unique_ptr<ReconnectingStream>> streams_;

  // Held from planning commands until they are passed to the streams, so that a
  // worker receives them in the order of planning.
  absl::Mutex sending_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  ClosureIdReservation closure_ids_;
  RunTimeline timeline_;
  mutable absl::Mutex mutex_;
  ClosureQueue queue_ ABSL_GUARDED_BY(mutex_);
  WorkerSessions sessions_ ABSL_GUARDED_BY(mutex_);
  Definitions definitions_ ABSL_GUARDED_BY(mutex_);
  // True if a worker could take more closures, and if a worker had none. Set
  // when commands are planned, and by later reports.
  bool has_free_capacity_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_idle_worker_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_aborted_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status why_aborted_ ABSL_GUARDED_BY(mutex_);
  // Null until the job ends.
  std::unique_ptr<proto::JobEnd> job_end_ ABSL_GUARDED_BY(mutex_);
  int drain_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_suspended_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t generation_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COORDINATOR_CLOSURE_DISPATCHER_H_
