#ifndef COMMON_LEARN_TRAIN_CALLBACKS_BACKGROUND_WRITER_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_BACKGROUND_WRITER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/system/clock.h"
#include "common/core/system/repeat_count.h"
#include "common/net/status/status_report.h"

namespace muster {

// Writes checkpoints on a separate thread while training continues, one at a
// time. A failed write is logged as a warning and does not end training;
// earlier checkpoints are kept. Of writes that fail one after another for one
// reason, and of those that are skipped, the first, the 10th, the 100th and so
// on are logged, with their number.
//
// Thread-compatible.
class BackgroundWriter {
 public:
  struct Options {
    // The maximum time that Await() blocks.
    absl::Duration timeout = absl::Minutes(10);
    Clock* clock = Clock::Real();  // Borrowed.
  };

  explicit BackgroundWriter(Options options);
  BackgroundWriter() : BackgroundWriter(Options()) {}

  // Blocks until the current write has ended, without a deadline.
  ~BackgroundWriter();

  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  // Starts `write` on the writer's thread. If the previous write is still
  // running, returns false without calling `write`. `what` is the name in
  // messages: "checkpoint b/ckpt-3".
  bool Start(std::string what, std::function<absl::Status()> write);

  // Blocks until the previous write has ended, then starts `write` and blocks
  // until it has ended. Returns its status; errors as Await().
  absl::Status Run(std::string what, std::function<absl::Status()> write);

  // Blocks until no write is running, and logs what it waits for. Returns the
  // status of the last write.
  //   kDeadlineExceeded  the write did not end in time; the message names it
  absl::Status Await();

  bool is_busy() const ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t failure_count() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  bool IsIdle() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !is_busy_; }
  void Finish(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteFailure(const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddStatus(StatusReport* report) const ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  std::thread thread_;
  mutable absl::Mutex mutex_;
  bool is_busy_ ABSL_GUARDED_BY(mutex_) = false;
  std::string what_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);  // Of the last write.
  int64_t failure_count_ ABSL_GUARDED_BY(mutex_) = 0;
  RepeatCount skipped_ ABSL_GUARDED_BY(mutex_);
  // Of writes that failed one after another with the code of `status_`.
  RepeatCount failures_ ABSL_GUARDED_BY(mutex_);
  absl::Time start_ ABSL_GUARDED_BY(mutex_);
  std::optional<CheckpointStatus> newest_ ABSL_GUARDED_BY(mutex_);
  const StatusSource source_;  // Reads the members above.
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_BACKGROUND_WRITER_H_
