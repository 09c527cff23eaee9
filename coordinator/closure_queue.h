#ifndef COORDINATOR_CLOSURE_QUEUE_H_
#define COORDINATOR_CLOSURE_QUEUE_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "coordinator/closure_ids.h"
#include "coordinator/credit_window.h"
#include "coordinator/remote_value.h"
#include "coordinator/update_rounds.h"

namespace muster {

// Defined in coordinator/closure_arguments.h; opaque to the queue.
struct ClosureArguments;

// The work of one closure.
struct ClosureWork {
  uint32_t function_id = 0;
  std::shared_ptr<const ClosureArguments> arguments;  // Null: no arguments.
  // How often the function runs. The results of all runs are concatenated.
  int step_count = 1;
  // False if it only reads variables, so that a rollback need not undo it.
  bool has_effects = true;
  // True to send results of any size with the report, instead of keeping them
  // on a worker that may be lost.
  bool results_come_along = false;
  // True if it takes part in the rounds of synchronous training.
  bool is_synchronous = false;
};

// Schedules closures on workers: a state machine without threads, sockets or
// clocks.
//
// A closure is queued, then in flight on one worker, then finished. It returns
// to the head of the queue with the same id if its worker is lost or returns
// it. Ids count from Options::first_id. The low-water mark is the lowest id of
// an unfinished closure, or the limit of LimitLowWaterMark() if that is lower.
//
// The first failure stops scheduling: queued closures are cancelled, and those
// in flight are recalled. When none is left, the failure can be taken, which
// resets the queue. Further failures are appended to the first.
//
// In synchronous training (UpdateRounds) a worker holds one synchronous closure
// at a time. Without backup workers the closure is chosen when it is sent. With
// them the worker asks before it applies gradients; at the end of a round,
// closures that were not chosen return to the queue while their workers still
// compute: such a worker is overtaken, and its gradients will be denied.
//
// Not thread-safe: the owner serializes its calls.
class ClosureQueue {
 public:
  struct Options {
    int worker_count = 0;
    // The id of the first closure; at least 1.
    uint64_t first_id = 1;
    // As LimitLowWaterMark(), from the start.
    uint64_t low_water_mark_max = std::numeric_limits<uint64_t>::max();
    // Closures that one worker runs concurrently.
    int runner_count = 1;
    int queued_closures_max = 256 * 1024;
    // A closure fails after this many workers were lost while running it,
    // because it probably caused the losses.
    int attempts_max = 4;
    // How often a closure is retried after transient errors.
    int retries_max = 50;
    // Unstarted closures are recalled from a busy worker for an idle one if
    // they amount to at least this much work.
    absl::Duration recall_worth_min = absl::Milliseconds(2);
    CreditWindow::Options window;
    UpdateRounds::Options rounds;
  };

  struct Taken {
    uint64_t id = 0;
    ClosureWork work;
    bool result_wanted = true;
  };

  explicit ClosureQueue(const Options& options);

  ClosureQueue(const ClosureQueue&) = delete;
  ClosureQueue& operator=(const ClosureQueue&) = delete;

  // ---- Scheduling.

  // True if another closure can be added. Also false if the low-water mark is
  // too far behind the newest id, because servers keep records of all ids above
  // the mark.
  bool HasRoom() const;

  // Adds a closure. Requires HasRoom() and !failing().
  std::shared_ptr<RemoteValueState> Add(ClosureWork work);

  // Keeps the low-water mark at `limit` or below it. Servers then remember the
  // closures from `limit` on, which a later coordinator may run again. The mark
  // must not decrease.
  void LimitLowWaterMark(uint64_t limit) { mark_max_ = limit; }

  // Continues with the closure `id` of an earlier coordinator of the job, which
  // may be lower than the ids of this queue so far. Requires that no closure is
  // queued or in flight.
  void ContinueAt(uint64_t id);

  // True if the closure and all with lower ids have finished.
  bool HasFinished(uint64_t id) const { return id < first_id_; }

  // Cancels a closure that has not been started and sets its RemoteValue to
  // kCancelled. A started closure may still finish. Has no effect on a finished
  // one.
  void Cancel(uint64_t id);
  void CancelAll();

  // ---- The session of one worker.

  // Records that a session with `worker` has been opened. The worker holds no
  // closures and can get some.
  void WorkerReady(int worker);

  // Records that a worker was lost. Its closures return to the head of the
  // queue, except those that have reached attempts_max, which fail. `why` names
  // the worker.
  void WorkerLost(int worker, const absl::Status& why);

  // Records that the session of a worker is replaced. Its closures did not
  // cause that; they return to the head of the queue.
  void WorkerReleased(int worker);

  // Pauses or resumes a worker. A paused worker gets no closures, and no
  // closure is reserved for it.
  void SetPaused(int worker, bool is_paused);

  // True if closures should be sent to the worker. If there are at most as many
  // queued closures as idle workers, they are reserved for idle workers.
  bool HasClosuresFor(int worker);
  bool HasRecallsFor(int worker) const;

  // Moves up to `count_max` closures to the worker.
  void Take(int worker, int count_max, std::vector<Taken>* taken);
  std::vector<uint64_t> TakeRecalls(int worker);

  // The answers to AskPermission().
  struct Answers {
    std::vector<uint64_t> permitted;
    std::vector<uint64_t> denied;
    bool empty() const { return permitted.empty() && denied.empty(); }
  };
  Answers TakeAnswers(int worker);

  // These methods process the reports of the worker.
  //   kInvalidArgument  the worker does not hold that closure; the caller
  //                     should end its session
  absl::Status Finish(int worker, uint64_t id, std::vector<Tensor> results);
  // Finishes `count` closures without results, beginning with `first_id`.
  absl::Status FinishRange(int worker, uint64_t first_id, uint32_t count);
  absl::Status FinishKept(int worker, uint64_t id, RemoteValueState::Kept kept);
  absl::Status Fail(int worker, uint64_t id, const absl::Status& status);
  // As Fail(), but retries the closure on any worker up to retries_max times.
  absl::Status FailOrRetry(int worker, uint64_t id, const absl::Status& status);
  absl::Status Return(int worker, uint64_t id);
  // Decides whether the closure may apply its gradients. The answer is one of
  // TakeAnswers().
  absl::Status AskPermission(int worker, uint64_t id);
  void ObservePace(int worker, int64_t count, absl::Duration busy);

  // ---- Checkpoints and rollbacks.

  // Begins a round of which the servers have `applied_count` gradients.
  // Requires that no synchronous closure is queued or in flight.
  void BeginRound(int applied_count) { rounds_.Begin(applied_count); }

  // Recalls every closure that its worker has not started.
  void RecallUnstarted();
  void RecallUnstarted(int worker);

  // Returns the closures with effects that have succeeded.
  const ClosureIds& succeeded() const { return succeeded_; }

  // Records that the effects of all succeeded closures except `kept` are
  // undone. Returns the undone closures.
  ClosureIds RollBack(const ClosureIds& kept);

  // Cancels all closures with this error.
  void FailAll(const absl::Status& why) { StoreFailure(why); }

  // ---- Failures and the end.

  // Fails all closures, present and future.
  void Abort(const absl::Status& why);

  // True if a failure is stored.
  bool failing() const { return !first_failure_.ok(); }
  bool idle() const { return queued_count_ == 0 && in_flight_count_ == 0; }

  // Returns the first failure, with the others in its message; OK if there was
  // none. Requires idle() unless aborted. Resets the queue unless aborted.
  absl::Status TakeFailure();

  // ---- Statistics.

  uint64_t low_water_mark() const { return std::min(first_id_, mark_max_); }
  // Returns the id of the next closure that is added.
  uint64_t next_id() const { return first_id_ + entries_.size(); }
  int64_t queued_count() const { return queued_count_; }
  int64_t in_flight_count() const { return in_flight_count_; }
  int64_t in_flight_count(int worker) const {
    return static_cast<int64_t>(worker_states_[worker].in_flight.size());
  }
  int64_t finished_count() const { return finished_count_; }
  // Closures that returned to the queue because their worker was lost.
  int64_t requeued_count() const { return requeued_count_; }
  // Returns the mean time of the worker's recent closures; zero if unknown.
  absl::Duration closure_time(int worker) const {
    return worker_states_[worker].window.closure_time();
  }
  int window_size(int worker) const {
    return worker_states_[worker].window.size();
  }
  // Returns the estimated time for the closures that the worker holds; zero if
  // unknown.
  absl::Duration backlog(int worker) const {
    return worker_states_[worker].window.closure_time() *
           in_flight_count(worker);
  }

  // Returns text such as "3 closures are queued; worker 1 holds 2, the oldest
  // is closure 17".
  std::string Describe() const;
  // Returns "is not connected" or a count of the closures that the worker
  // holds; empty if it holds none.
  std::string DescribeWorker(int worker) const;

 private:
  enum class State { kQueued, kInFlight, kFinished };

  struct Entry {
    ClosureWork work;
    std::shared_ptr<RemoteValueState> value;
    State state = State::kQueued;
    bool is_recalled = false;
    bool is_cancelled = false;
    int worker = -1;
    int attempts = 0;
    int retries = 0;
    uint64_t round = 0;      // In which it was taken, if it is synchronous.
    bool is_chosen = false;  // Its gradients belong to the current round.
  };

  struct WorkerState {
    explicit WorkerState(const Options& options)
        : window(options.runner_count, options.window) {}
    bool ready = false;
    bool is_paused = false;
    // An overtaken worker gets nothing until it has ended its closure.
    bool MayTake() const { return ready && !is_paused && overtaken.empty(); }
    std::deque<uint64_t> in_flight;  // In the order in which they were sent.
    int recalls_unanswered = 0;
    std::vector<uint64_t> recalls_to_send;
    // Closures that the worker computes, and that have returned to the queue.
    std::vector<uint64_t> overtaken;
    Answers answers;
    CreditWindow window;
  };

  Entry* Find(uint64_t id);
  Entry* FindInFlight(int worker, uint64_t id);
  absl::Status NotHeld(int worker, uint64_t id) const;
  // Returns the next closure to send; null if there is none.
  Entry* FrontQueued();
  // True if the worker may take the synchronous closure now.
  bool MayStart(const WorkerState& worker_state, const Entry& entry) const;
  // Adds a synchronous closure that is sent to a worker to the round.
  void StartInRound(Entry* entry);
  // Returns true if the worker was overtaken in the closure, and records that
  // it has ended it.
  bool EndOvertaken(int worker, uint64_t id);
  // Records that a closure in flight that may be synchronous does not take part
  // in its round, unless it was chosen.
  void LeaveRound(const Entry& entry);
  // Returns the closures that were not chosen to the queue.
  void OvertakeWorkers();
  void LeaveWorker(Entry* entry, uint64_t id);
  void Requeue(uint64_t id, Entry* entry);
  void MarkFinished(Entry* entry);
  // Takes a closure that has succeeded from its worker.
  void MarkSucceeded(Entry* entry, uint64_t id);
  // Ends a closure that no worker holds. `when` follows "was cancelled".
  void MarkCancelled(Entry* entry, uint64_t id, absl::string_view when);
  void AfterFinishes();
  void DropFinished();
  void DropCancelledFromPending();
  void Recall(uint64_t id, Entry* entry);
  void RecallForIdleWorkers();
  void StoreFailure(absl::Status status);

  const Options options_;
  // Closures first_id_, first_id_ + 1, and so on. The first one is unfinished.
  std::deque<Entry> entries_;
  uint64_t first_id_;
  uint64_t mark_max_;
  // The ids of queued closures in scheduling order; some have been cancelled.
  std::deque<uint64_t> pending_;
  std::vector<WorkerState> worker_states_;
  UpdateRounds rounds_;
  int64_t queued_count_ = 0;
  int64_t in_flight_count_ = 0;
  int64_t finished_count_ = 0;
  int64_t requeued_count_ = 0;
  ClosureIds succeeded_;

  absl::Status first_failure_;
  bool aborted_ = false;
  std::vector<std::string> further_failures_;
  int64_t further_failure_count_ = 0;
};

}  // namespace muster

#endif  // COORDINATOR_CLOSURE_QUEUE_H_
