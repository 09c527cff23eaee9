#ifndef PS_LOG_KEEPER_H_
#define PS_LOG_KEEPER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/core/system/clock.h"
#include "common/io/storage/disk.h"
#include "common/net/rpc/identity.h"
#include "proto/server_log.pb.h"
#include "ps/log/log_lock.h"
#include "ps/log/server_log.h"
#include "ps/parameter_shard.h"

namespace muster {

// Restores a shard from the log of the process that this one replaces, and then
// records its changes, with a snapshot from time to time.
//
// A log that cannot be used or kept is no error: the loss of the server then
// rolls training back. The reason is logged.
//
// Thread-safe.
class LogKeeper {
 public:
  struct Options {
    TaskIdentity self;
    std::string folder;
    // As ServerLog::Options.
    int64_t size_bytes_max = int64_t{1} << 30;
    int64_t snapshot_bytes_min = int64_t{16} << 20;
    int64_t bytes_per_second_max = 0;
    // Identifies the boot of this machine.
    std::string boot_id;
    Disk* disk = Disk::Real();     // Borrowed.
    Clock* clock = Clock::Real();  // Borrowed.
    // False on a disk without a lock, in tests.
    bool locks_folder = true;
  };

  // What was restored.
  struct Restored {
    proto::RestoredState state;
    proto::ServerLogJob job;
  };

  // `shard` is empty, is borrowed and must outlive this object.
  LogKeeper(Options options, ParameterShard* shard);
  // Changes are recorded until the shard is destroyed or SetRecorder(nullptr).
  ~LogKeeper();

  LogKeeper(const LogKeeper&) = delete;
  LogKeeper& operator=(const LogKeeper&) = delete;

  const std::optional<Restored>& restored() const { return restored_; }
  // Why a log that was there was not restored; empty if it was, or if there was
  // none.
  const std::string& why_not_restored() const { return why_not_restored_; }

  // Identifies the state of the shard; 0 if no log was ever kept.
  uint64_t state_id() const { return log_.state_id(); }
  // The number of the newest record; 0 if no log is kept.
  int64_t log_number() const { return log_.number(); }

  // Records for which job and coordinator the server works, unless it is
  // recorded. Call it before the shard is changed on their behalf.
  absl::Status NoteJob(const proto::ServerLogJob& job)
      ABSL_LOCKS_EXCLUDED(job_mutex_);
  // The shard begins again without a job.
  void Reset() ABSL_LOCKS_EXCLUDED(job_mutex_);
  // Removes the log: nothing of the state is needed any more.
  void End();

 private:
  // Begins to record, after what was restored if anything was.
  absl::Status Begin();
  absl::StatusOr<std::optional<ServerLog::Content>> Restore();
  void RunLoop();
  absl::Status TakeSnapshot(ServerLog::Snapshot* snapshot)
      ABSL_LOCKS_EXCLUDED(job_mutex_);

  const Options options_;
  ParameterShard* const shard_;
  std::unique_ptr<LogLock> lock_;
  ServerLog log_;
  std::optional<Restored> restored_;  // Constant after construction.
  std::string why_not_restored_;      // Constant after construction.

  absl::Mutex job_mutex_;
  proto::ServerLogJob job_ ABSL_GUARDED_BY(job_mutex_);

  std::thread thread_;  // Constant after construction.
};

}  // namespace muster

#endif  // PS_LOG_KEEPER_H_
