#ifndef COMMON_LEARN_TRAIN_CHECKPOINTS_BACKGROUND_WRITER_H_
#define COMMON_LEARN_TRAIN_CHECKPOINTS_BACKGROUND_WRITER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/clock.h"

namespace muster {

// Writes checkpoints on a thread of its own while training goes on, one at a
// time. A write that fails is a warning, not the end of training: what was
// written before is still there.
//
// Thread-compatible.
class BackgroundWriter {
 public:
  struct Options {
    // What Await() waits for at most.
    absl::Duration timeout = absl::Minutes(10);
    Clock* clock = Clock::Real();  // Borrowed.
  };

  explicit BackgroundWriter(Options options);
  BackgroundWriter() : BackgroundWriter(Options()) {}

  // Waits for what is being written, however long that takes.
  ~BackgroundWriter();

  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  // Calls `write` on the other thread, or does not where the write before is
  // still going on, which the log tells. `what` names it: "checkpoint
  // b/ckpt-3".
  bool Start(std::string what, std::function<absl::Status()> write);

  // The same on this thread, after the one before.
  absl::Status Run(std::string what, std::function<absl::Status()> write);

  // Waits until nothing is being written, and says what in the log while it
  // does. Returns how the last write ended.
  //   kDeadlineExceeded  names what is still being written
  absl::Status Await();

  bool is_busy() const ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t failure_count() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  bool IsIdle() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !is_busy_; }
  void Finish(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  std::thread thread_;
  mutable absl::Mutex mutex_;
  bool is_busy_ ABSL_GUARDED_BY(mutex_) = false;
  std::string what_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);  // Of the last one.
  int64_t failure_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CHECKPOINTS_BACKGROUND_WRITER_H_
