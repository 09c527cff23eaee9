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

// The environment of a program: its task, its cluster,
// and what it was told on the command line. Strategies are made from it.
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

  // Ends the job, if one was begun, as a failed one.
  ~Task() { EndJob(absl::AbortedError("training was given up")).IgnoreError(); }

  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  const TaskOptions& options() const { return options_; }
  const TaskIdentity& identity() const { return identity_; }
  uint64_t seed() const { return seed_; }
  Network* network() const { return network_; }  // Borrowed.

  // Returns the value that --set name=value gave the setting `name`, or the
  // default with which the program declared it (RunTask()).
  //   kInvalidArgument  the program declares no such setting; names those that
  //                     it declares
  absl::StatusOr<std::string> flag(absl::string_view name) const;

  // Strategies say here that they begin to connect to the other tasks, which
  // are told from then on how training ends.
  void NoteConnecting() { connects_ = true; }
  bool connects() const { return connects_; }

  // Sets why this process cannot train, before a strategy has connected. The
  // strategy then tells the other tasks of its cluster, and is an error.
  void SetFailure(absl::Status failure) { failure_ = std::move(failure); }
  const absl::Status& failure() const { return failure_; }

  // Strategies say here what is to be done when the job ends. `end` gets how
  // training ended, and returns what the process is to end with: the same, or
  // more about it (WithExitCode()).
  void OnJobEnd(std::function<absl::Status(const absl::Status&)> end) {
    ends_.push_back(std::move(end));
  }

  // And here, what makes training end early with an error: called on another
  // thread when the process is told to stop. Must not wait.
  void OnInterrupt(std::function<void()> interrupt)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    interrupts_.push_back(std::move(interrupt));
  }

  // True if there was anything to interrupt. Thread-safe.
  bool Interrupt() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    for (const auto& interrupt : interrupts_) interrupt();
    return !interrupts_.empty();
  }

  // Called by the code that runs the program, when it has ended with `status`.
  // Once. Returns what the process is to end with.
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
