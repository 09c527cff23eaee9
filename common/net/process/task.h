#ifndef COMMON_NET_PROCESS_TASK_H_
#define COMMON_NET_PROCESS_TASK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/net/process/task_options.h"
#include "common/net/rpc/identity.h"

namespace muster {

class Network;

// The environment of a program: its task, its cluster and its options.
// Strategies are created from it.
//
// Not thread-safe, except for Interrupt().
class Task {
 public:
  Task(TaskOptions options, TaskIdentity identity, uint64_t seed,
       Network* network)
      : options_(std::move(options)),
        identity_(std::move(identity)),
        seed_(seed),
        network_(network) {}

  // Calls EndJob() with an error, if the program has not called it.
  ~Task() { EndJob(absl::AbortedError("training was given up")).IgnoreError(); }

  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  const TaskOptions& options() const { return options_; }
  const TaskIdentity& identity() const { return identity_; }
  uint64_t seed() const { return seed_; }
  Network* network() const { return network_; }  // Borrowed.

  // Returns the value of the setting `name`: from --set name=value, or the
  // default that the program declared (RunTask()).
  //   kInvalidArgument  the program declares no such setting; the message lists
  //                     the declared ones
  absl::StatusOr<std::string> flag(absl::string_view name) const;

  // Called by a strategy when it begins to connect to the other tasks. From
  // then on, the strategy notifies the other tasks of the end of training.
  void NoteConnecting() { connects_ = true; }
  bool connects() const { return connects_; }

  // Sets the reason why this process cannot train. Called before a strategy has
  // connected. Creating a strategy then sends the reason to the other tasks of
  // the cluster, and fails.
  void SetFailure(absl::Status failure) { failure_ = std::move(failure); }
  const absl::Status& failure() const { return failure_; }

  // Adds a function to call when the job ends; for strategies. `end` gets the
  // status of training and returns the status of the process: the same, or one
  // with more information (WithExitCode()).
  void OnJobEnd(std::function<absl::Status(const absl::Status&)> end) {
    ends_.push_back(std::move(end));
  }

  // Adds a function that makes training end early with an error; for
  // strategies. Interrupt() calls it on another thread. It must not block.
  void OnInterrupt(std::function<void()> interrupt)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    interrupts_.push_back(std::move(interrupt));
  }

  // Interrupts training. Returns true if there was anything to interrupt.
  // Thread-safe.
  bool Interrupt() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    for (const auto& interrupt : interrupts_) interrupt();
    return !interrupts_.empty();
  }

  // Called once by the code that runs the program, when the program has ended
  // with `status`. Returns the status of the process.
  absl::Status EndJob(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      absl::MutexLock lock(&mutex_);
      interrupts_.clear();
    }
    for (auto& end : std::exchange(ends_, {})) status = end(status);
    return status;
  }

 private:
  const TaskOptions options_;
  const TaskIdentity identity_;
  const uint64_t seed_;
  Network* const network_;
  bool connects_ = false;
  absl::Status failure_;
  std::vector<std::function<absl::Status(const absl::Status&)>> ends_;
  absl::Mutex mutex_;
  std::vector<std::function<void()>> interrupts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COMMON_NET_PROCESS_TASK_H_
