#ifndef COORDINATOR_CLOSURE_QUEUE_H_
#define COORDINATOR_CLOSURE_QUEUE_H_

#include <cstdint>
#include <deque>
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

namespace muster {

struct ClosureArguments;  // coordinator/function.h; the queue never looks.

// What a worker is to run.
struct ClosureWork {
  uint32_t function_id = 0;
  std::shared_ptr<const ClosureArguments> arguments;  // Null for none.
  // Times that the function runs; the results follow each other.
  int step_count = 1;
  // Otherwise it reads variables and changes none: there is nothing of it that
  // could be undone.
  bool has_effects = true;
  // The results come with the news of them however large they are, and are not
  // kept by a worker that may be lost.
  bool results_come_along = false;
};

// Which closure goes to which worker, and what becomes of it: scheduling as a
// state machine, with no thread, socket or clock in it.
//
// A closure is queued, then in flight on one worker, then finished. It goes
// back to the head of the queue, under its old id, when its worker is lost or
// hands it back. Ids count from 1; the low-water mark is the lowest unfinished.
//
// The first failure stops everything: what is queued is cancelled, what is in
// flight is recalled, and when nothing is left the failure can be taken and the
// queue is as new. Failures that arrive meanwhile are listed behind the first.
//
// Not thread-safe: the owner serializes its calls.
class ClosureQueue {
 public:
  struct Options {
    int worker_count = 0;
    // Closures that one worker runs at once.
    int runner_count = 1;
    int queued_closures_max = 256 * 1024;
    // A closure that was running on so many workers when they died is the
    // suspect, not the workers.
    int attempts_max = 4;
    // Times that a closure is tried again after a passing trouble.
    int retries_max = 50;
    // Unstarted closures are recalled from a busy worker for an idle one when
    // they stand for at least this much work.
    absl::Duration recall_worth_min = absl::Milliseconds(2);
    CreditWindow::Options window;
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

  // Room for another closure. Also false when one old closure holds the
  // low-water mark back too far, because servers remember all ids above it.
  bool HasRoom() const;

  // Needs HasRoom() and !failing().
  std::shared_ptr<RemoteValueState> Add(ClosureWork work);

  // Best effort: a closure that has been started may finish all the same. Its
  // RemoteValue says kCancelled when it did not. Finished ones stay as they
  // are.
  void Cancel(uint64_t id);
  void CancelAll();

  // ---- One worker's conversation.

  // A session with `worker` is open: it holds nothing and may take.
  void WorkerReady(int worker);

  // Its closures go back to the head of the queue, except for suspects, which
  // fail. `why` names the worker.
  void WorkerLost(int worker, const absl::Status& why);

  // Its session is replaced by another, through no fault of its closures, which
  // go back to the head of the queue.
  void WorkerReleased(int worker);

  // A worker that is paused takes nothing, and nothing is kept for it.
  void SetPaused(int worker, bool is_paused);

  // Something is to be sent to the worker. What is no more than one for each
  // idle worker is for those.
  bool HasClosuresFor(int worker) const;
  bool HasRecallsFor(int worker) const;

  // Moves up to `count_max` closures to the worker.
  void Take(int worker, int count_max, std::vector<Taken>* taken);
  std::vector<uint64_t> TakeRecalls(int worker);

  // What the worker reports.
  //   kInvalidArgument  the worker does not hold that closure; it has lost its
  //                     mind and its session should end
  absl::Status Finish(int worker, uint64_t id, std::vector<Tensor> results);
  absl::Status FinishKept(int worker, uint64_t id, RemoteValueState::Kept kept);
  absl::Status Fail(int worker, uint64_t id, const absl::Status& status);
  // As Fail(), unless the closure may be tried again, on any worker.
  absl::Status FailOrRetry(int worker, uint64_t id, const absl::Status& status);
  absl::Status Return(int worker, uint64_t id);
  void ObservePace(int worker, int64_t count, absl::Duration busy);

  // ---- Checkpoints and rollbacks.

  // Every closure that its worker has not started is to be handed back.
  void RecallUnstarted();
  void RecallUnstarted(int worker);

  // The closures whose effects are there: those that have some and have
  // succeeded.
  const ClosureIds& succeeded() const { return succeeded_; }

  // The effects of all but `kept` are undone. Returns whose they were.
  ClosureIds RollBack(const ClosureIds& kept);

  // Cancels everything, for this reason.
  void FailAll(const absl::Status& why) { StoreFailure(why); }

  // ---- The end.

  // Fails everything, now and for good.
  void Abort(const absl::Status& why);

  // A failure is stored.
  bool failing() const { return !first_failure_.ok(); }
  bool idle() const { return queued_count_ == 0 && in_flight_count_ == 0; }

  // The first failure, and the others in its message. Needs idle(), unless
  // aborted; after it the queue is as new, unless aborted. OK when there was no
  // failure.
  absl::Status TakeFailure();

  // ---- What is going on.

  uint64_t low_water_mark() const { return first_id_; }
  int64_t queued_count() const { return queued_count_; }
  int64_t in_flight_count() const { return in_flight_count_; }
  int64_t in_flight_count(int worker) const {
    return static_cast<int64_t>(lanes_[worker].in_flight.size());
  }
  int64_t finished_count() const { return finished_count_; }
  // Closures that went back to the queue because their worker was lost.
  int64_t requeued_count() const { return requeued_count_; }
  int window_size(int worker) const { return lanes_[worker].window.size(); }
  // Time that the worker will take for what it holds; zero while its pace is
  // unknown.
  absl::Duration backlog(int worker) const {
    return lanes_[worker].window.closure_time() * in_flight_count(worker);
  }

  // "3 closures are queued; worker 1 holds 2, the oldest is closure 17".
  std::string Describe() const;

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
  };

  struct Lane {
    explicit Lane(const Options& options)
        : window(options.runner_count, options.window) {}
    bool ready = false;
    bool is_paused = false;
    bool MayTake() const { return ready && !is_paused; }
    std::deque<uint64_t> in_flight;  // In the order of sending.
    int recalls_unanswered = 0;
    std::vector<uint64_t> recalls_to_send;
    CreditWindow window;
  };

  Entry* Find(uint64_t id);
  Entry* FindInFlight(int worker, uint64_t id);
  absl::Status NotHeld(int worker, uint64_t id) const;
  void LeaveLane(Entry* entry, uint64_t id);
  void Requeue(uint64_t id, Entry* entry);
  void MarkFinished(Entry* entry);
  void DropFinished();
  void DropCancelledFromPending();
  void Recall(uint64_t id, Entry* entry);
  void RecallForIdleWorkers();
  void StoreFailure(absl::Status status);

  const Options options_;
  // Closures first_id_, first_id_ + 1, ...; the first one is unfinished.
  std::deque<Entry> entries_;
  uint64_t first_id_ = 1;
  // Ids in the order in which they are handed out; some are cancelled by now.
  std::deque<uint64_t> pending_;
  std::vector<Lane> lanes_;
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
