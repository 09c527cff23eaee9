#ifndef COORDINATOR_CLOSURE_DISPATCHER_H_
#define COORDINATOR_CLOSURE_DISPATCHER_H_

#include <atomic>
#include <cstdint>
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
#include "common/net/status/status_report.h"
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

// Moves closures between the ClosureQueue and the workers: the part of
// scheduling that has threads, streams and time.
//
// Commands are sent by the thread that makes them possible: the one that
// schedules a closure for an idle worker, or a thread of the transport that
// brings a report. A thread of this object's own counts heartbeats, and sends
// where another thread is sending already or a fuller message is worth waiting
// for. A worker that is lost is dialled again for as long as this object lives,
// and used as soon as it is back. The other workers do not wait for it.
//
// Thread-safe.
class ClosureDispatcher : private ReconnectingStream::Listener {
 public:
  struct Options {
    ClusterSpec cluster;
    // A worker of another version refuses.
    std::string version = std::string(kVersion);
    // How workers' messages name this process: "chief 0 on host h0, process
    // 4711".
    std::string coordinator;
    uint64_t job_seed = 0;
    ClosureQueue::Options queue;  // worker_count is filled in.
    absl::Duration heartbeat_interval = absl::Milliseconds(500);
    // A worker silent for longer is lost, whatever its connection says.
    absl::Duration heartbeat_timeout = absl::Seconds(5);
    // For the answer to an opening.
    absl::Duration handshake_timeout = absl::Seconds(10);
    // How long a worker that cannot reach a parameter server gets nothing; its
    // closures go to others.
    BackoffOptions retry_pause = {.initial = absl::Milliseconds(200),
                                  .maximum = absl::Seconds(10)};
    // Between two log lines about that, for each worker.
    absl::Duration trouble_report_interval = absl::Seconds(10);
    BackoffOptions reconnect = {.initial = absl::Milliseconds(20),
                                .maximum = absl::Milliseconds(200)};
  };

  // One channel for each worker, by index. `missing` is told who has been met
  // and who refuses; it and `clock` are borrowed.
  ClosureDispatcher(const Options& options,
                    std::vector<std::unique_ptr<Channel>> channels,
                    FailureJudge judge, MissingTasks* missing, Clock* clock);

  // Ends all sessions. Calls that wait for a closure return kCancelled.
  ~ClosureDispatcher() override;

  ClosureDispatcher(const ClosureDispatcher&) = delete;
  ClosureDispatcher& operator=(const ClosureDispatcher&) = delete;

  // Sent to each worker when it first needs it. Returns the id.
  uint32_t AddFunction(absl::string_view name, std::string serialized_graph)
      ABSL_LOCKS_EXCLUDED(mutex_);
  uint32_t AddIterator(IteratorRecord iterator) ABSL_LOCKS_EXCLUDED(mutex_);

  // From now on, tensors in `batches`, which is borrowed, are named in messages
  // to workers that have this memory.
  void SetSharedBatches(const SharedBatches* batches) {
    shared_batches_.store(batches, std::memory_order_release);
  }

  // Queues a closure. Waits while the queue is full, or while an earlier
  // failure is being cleaned up, at most for `timeout`.
  //   kDeadlineExceeded  says what the queue is waiting for
  //   any                an earlier closure failed; this call has taken the
  //                      failure, as Join() would have
  absl::StatusOr<RemoteValue> Schedule(ClosureWork work, absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits until nothing is queued or running, and takes the failure, if any.
  //   kDeadlineExceeded  says what it waits for
  absl::Status Join(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);

  // True if nothing is queued or running. Does not wait; takes the failure when
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

  // Hands nothing out until Resume(), without waiting for workers. Nothing is
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
  ClosureIds succeeded() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return queue_.succeeded();
  }
  bool is_aborted() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return is_aborted_;
  }
  // Between Suspend() and Resume().
  bool is_suspended() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return is_suspended_;
  }
  // What Abort() was given; OK before.
  absl::Status why_aborted() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return why_aborted_;
  }

  // Gives `worker` no more closures, has it finish those that it runs, and
  // tells it that its part of the job is over, so that its process ends with
  // status 0. `on_left` is called when its session has ended, on a thread that
  // must not block. The worker does not come back in this job.
  //   kFailedPrecondition  it is not connected, or no other worker is left; the
  //                        message has the way out. `on_left` is not called
  absl::Status DrainWorker(int worker, absl::AnyInvocable<void()> on_left)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Fails everything, now and for good.
  void Abort(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  // Tells every worker that the job is over. Waits for connected workers until
  // `deadline`, and for lost ones for a few seconds at most. Those that were
  // not told are named.
  absl::Status EndJob(const proto::JobEnd& end, absl::Time deadline)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Lets the workers go to another coordinator: those that are there, and those
  // that are about to accept a session. Does not wait for the others.
  void Withdraw(absl::string_view reason, absl::Time deadline)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Adds the queue and a TaskStatus for each worker.
  void AddStatus(StatusReport* report) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Which worker holds what, and which are lost, in one line.
  std::string Describe() const ABSL_LOCKS_EXCLUDED(mutex_);

  struct Counters {
    int64_t finished_count = 0;
    int64_t requeued_count = 0;   // Closures run again elsewhere.
    int64_t lost_count = 0;       // Sessions that ended badly.
    int64_t recovered_count = 0;  // Workers that came back.
    absl::Duration busy;          // Time that workers spent in closures.
    int64_t queued_count = 0;     // Now.
    int64_t in_flight_count = 0;  // Now.
  };
  Counters counters() const ABSL_LOCKS_EXCLUDED(mutex_);

  // How long the steps of a function took on the workers. For steps shorter
  // than a worker's report interval, the mean of those in one report.
  DurationHistogram StepDurations(uint32_t function_id) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // True if the worker has refused a session because the tasks disagree about
  // the cluster. It ends by itself.
  bool HasRefused(int worker) const ABSL_LOCKS_EXCLUDED(mutex_);

  int worker_count() const { return static_cast<int>(streams_.size()); }
  // 0 while never met.
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

  // Processes what a worker reports.
  //   any  the session must end
  absl::Status TakeIn(const proto::WorkerReport& report,
                      absl::Span<const Tensor> tensors, WorkerRecord* record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // True if the session continues, with which the results are lost.
  bool IsOpen(const RemoteValueState::Keeper& keeper) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  Channel& channel(int worker) const { return streams_[worker]->channel(); }
  absl::Time TakeTurn(const TickLoop::Turn& turn) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends what there is to send, on this thread or soon on the loop's.
  void Dispatch() ABSL_LOCKS_EXCLUDED(sending_mutex_, mutex_);
  void SendCommands(const TickLoop::Turn& turn)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sending_mutex_) ABSL_LOCKS_EXCLUDED(mutex_);
  // True if the worker is idle, or can take more closures.
  void NoteCapacity(const WorkerRecord& record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // To be sent without the lock.
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

  // Held from planning commands to handing them to the streams, so that a
  // worker gets them in the order in which they were planned.
  absl::Mutex sending_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  mutable absl::Mutex mutex_;
  ClosureQueue queue_ ABSL_GUARDED_BY(mutex_);
  WorkerSessions sessions_ ABSL_GUARDED_BY(mutex_);
  Definitions definitions_ ABSL_GUARDED_BY(mutex_);
  // When commands were last planned, or since then by a report: a worker could
  // have taken more closures; it had none.
  bool has_free_capacity_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_idle_worker_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_aborted_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status why_aborted_ ABSL_GUARDED_BY(mutex_);
  // Null while the job is not over.
  std::unique_ptr<proto::JobEnd> job_end_ ABSL_GUARDED_BY(mutex_);
  int drain_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_suspended_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster

#endif  // COORDINATOR_CLOSURE_DISPATCHER_H_
