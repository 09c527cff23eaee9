#ifndef COORDINATOR_RECOVERY_SAVER_H_
#define COORDINATOR_RECOVERY_SAVER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/system/clock.h"
#include "common/io/checkpoint/checkpoint_manager.h"
#include "common/learn/train/callbacks/background_writer.h"
#include "coordinator/server_copies.h"

namespace muster {

// Saves the variables of the servers between steps: periodically, so that
// training can be rolled back, and before a server exits on request.
//
// Thread-safe, except for SaveIfDue().
class RecoverySaver {
 public:
  struct Options {
    // The folder of checkpoints for recovery. Empty: writes none.
    std::string checkpoint_dir;
    absl::Duration checkpoint_interval = absl::Minutes(1);
  };

  // Pointers are borrowed.
  struct Parts {
    ServerCopies* servers = nullptr;
    Clock* clock = nullptr;
    std::function<absl::StatusOr<std::unique_ptr<VariableSnapshot>>()>
        take_snapshot;
    // True if training has progressed since the last snapshot was written.
    std::function<bool()> has_progressed;
    // The number of files of a checkpoint.
    std::function<int()> shard_count;
  };

  RecoverySaver(const Options& options, Parts parts);

  // Saves to checkpoint_dir if its interval has passed, while steps continue.
  // If `at_once`, or if a server is waiting to exit, saves if training has
  // progressed since the last snapshot, and blocks until the save has ended.
  // Without a checkpoint_dir, calls the preemption saver for a server that is
  // waiting to exit. Then allows such a server to exit. Logs a failed save.
  // Call it from one thread at a time.
  void SaveIfDue(bool at_once) ABSL_LOCKS_EXCLUDED(mutex_);

  void SetPreemptionSaver(std::function<absl::Status()> save)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Checks whether servers are waiting to exit. If so, the next SaveIfDue()
  // saves their variables. If no loop calls SaveIfDue() (`has_loop` is false),
  // or there is neither a checkpoint_dir nor a preemption saver, allows them to
  // exit.
  void NoteEnding(bool has_loop) ABSL_LOCKS_EXCLUDED(mutex_);

  // Blocks until no save is in progress.
  void AwaitWrite();

 private:
  void SaveToCheckpointDir(bool is_awaited);
  void CallPreemptionSaver() ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes a snapshot. If `is_awaited`, blocks until it is written; otherwise
  // the writer writes it in the background.
  absl::Status Save(bool is_awaited);
  void AllowEndingServersToExit();

  const Options options_;
  const Parts parts_;
  absl::Mutex mutex_;
  std::function<absl::Status()> preemption_saver_ ABSL_GUARDED_BY(mutex_);
  // True if a server waits for the next SaveIfDue().
  std::atomic<bool> has_ending_server_{false};
  absl::Time last_save_;
  std::unique_ptr<CheckpointManager> manager_;  // Null before the first save.
  BackgroundWriter writer_;                     // Uses the members above.
};

}  // namespace muster

#endif  // COORDINATOR_RECOVERY_SAVER_H_
