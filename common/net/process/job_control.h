#ifndef COMMON_NET_PROCESS_JOB_CONTROL_H_
#define COMMON_NET_PROCESS_JOB_CONTROL_H_

#include <atomic>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/net/cluster/task_id.h"

namespace muster {

// Returns the folder in `run_dir` for checkpoints that an operator requests.
std::string RequestedCheckpointFolder(const std::string& run_dir);

// Passes the requests of an operator (musterctl) to the job that this process
// leads. JobControlService receives the requests and adds them here. Training
// handles them between two steps.
//
// A process has one instance, OfProcess(). Thread-safe.
class JobControl {
 public:
  enum class Action { kCheckpoint, kStop };

  // Called once with the outcome of a request, on any thread: the prefix of the
  // checkpoint, or an empty string. Must not block.
  using Done = absl::AnyInvocable<void(absl::StatusOr<std::string>)>;

  static JobControl& OfProcess();

  JobControl() = default;
  JobControl(const JobControl&) = delete;
  JobControl& operator=(const JobControl&) = delete;

  // ---- Requests.

  // Requests a checkpoint between the current and the next step, or the end of
  // training after the current step. Calls `done` when this has been done.
  //   kFailedPrecondition  no Fit() is in progress, or training
  //                        has ended before a checkpoint could be written
  void Ask(Action action, Done done) ABSL_LOCKS_EXCLUDED(mutex_);

  // Requests that `task` gets no more work and ends.
  //   kFailedPrecondition  the training cannot continue without the task; the
  //                        message says why
  void RequestDrain(TaskId task, Done done) ABSL_LOCKS_EXCLUDED(mutex_);

  // ---- Training.

  // As long as an instance exists, its thread handles requests between two
  // steps.
  class Training {
   public:
    explicit Training(JobControl* control);
    // If this is the last instance, answers the remaining requests.
    ~Training();
    Training(const Training&) = delete;
    Training& operator=(const Training&) = delete;

   private:
    JobControl* const control_;
  };

  // True if Next() returns a request. One relaxed load.
  bool has_request() const {
    return has_request_.load(std::memory_order_relaxed);
  }
  // Returns the oldest request that has not been answered. After the first
  // kStop, returns kStop if there is no other request, so that later calls of
  // Fit() end as well.
  std::optional<Action> Next() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Answers the request that Next() returns.
  void Answer(absl::StatusOr<std::string> outcome) ABSL_LOCKS_EXCLUDED(mutex_);

  // The folder for requested checkpoints; empty if the run has no folder.
  void SetCheckpointFolder(std::string folder) ABSL_LOCKS_EXCLUDED(mutex_);
  std::string checkpoint_folder() const ABSL_LOCKS_EXCLUDED(mutex_);

  using Drainer = std::function<void(TaskId task, Done done)>;
  // Sets the function that drains tasks; null if tasks cannot be drained. The
  // function must not block. When SetDrainer() returns, the previous function
  // is not running.
  void SetDrainer(Drainer drainer) ABSL_LOCKS_EXCLUDED(drainer_mutex_);

 private:
  struct Request {
    Action action;
    Done done;
  };

  void NoteRequests() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    has_request_.store(is_stopped_ || !requests_.empty());
  }
  void EndTraining() ABSL_LOCKS_EXCLUDED(mutex_);

  std::atomic<bool> has_request_{false};
  mutable absl::Mutex mutex_;
  std::deque<Request> requests_ ABSL_GUARDED_BY(mutex_);
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  int training_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string checkpoint_folder_ ABSL_GUARDED_BY(mutex_);

  // Held while the drainer runs.
  absl::Mutex drainer_mutex_;
  Drainer drainer_ ABSL_GUARDED_BY(drainer_mutex_);
};

}  // namespace muster

#endif  // COMMON_NET_PROCESS_JOB_CONTROL_H_
