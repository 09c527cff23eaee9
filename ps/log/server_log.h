#ifndef PS_LOG_SERVER_LOG_H_
#define PS_LOG_SERVER_LOG_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/core/system/clock.h"
#include "common/io/storage/disk.h"
#include "proto/server_log.pb.h"
#include "ps/log/change_recorder.h"
#include "ps/log/log_file.h"

namespace muster {

// The log of one parameter server: every change of its state, in order, and
// from time to time a snapshot of the state, after which earlier records are
// removed. A process that replaces a killed one reads it and has the same
// state. docs/design/server_log.md has the protocol.
//
// Records are written and not synced. They survive the end of the process, and
// not that of the machine: a log of another boot is refused.
//
// The files of a folder are numbered. "segment-000003" has records, and
// "snapshot-000003" the state before the first of them. Each process writes
// segments of its own.
//
// If a record cannot be written, the log is removed and no longer kept: without
// that record it would describe another state. The loss of the server then
// rolls training back, as without a log.
//
// Thread-safe.
class ServerLog final : public ChangeRecorder {
 public:
  struct Options {
    std::string folder;
    std::string task;  // "ps 0".
    uint64_t incarnation = 0;
    // Identifies the boot of this machine.
    std::string boot_id;
    // A snapshot is taken when the records since the last one have 16 times the
    // size of the state, but at the latest at this size, or at that of the
    // state if it is larger.
    int64_t size_bytes_max = int64_t{1} << 30;
    // Fewer records are repeated faster than a snapshot is written.
    int64_t snapshot_bytes_min = int64_t{16} << 20;
    // If the records of some seconds are more, the log is given up, because it
    // would slow down training; 0 for no limit.
    int64_t bytes_per_second_max = 0;
    Disk* disk = Disk::Real();     // Borrowed.
    Clock* clock = Clock::Real();  // Borrowed.
  };

  // The end of what was read.
  struct Content {
    uint64_t state_id = 0;
    int64_t last_number = 0;
  };

  explicit ServerLog(Options options) : options_(std::move(options)) {}
  ~ServerLog() override { Stop(); }

  ServerLog(const ServerLog&) = delete;
  ServerLog& operator=(const ServerLog&) = delete;

  // ---- At the start, in this order.

  // Passes what the predecessor has recorded to `sink`, record by record, heads
  // excluded: first the snapshot, if there is one. Returns nullopt if there is
  // no log.
  //   kDataLoss            a file is damaged, or records are missing
  //   kFailedPrecondition  the log is of another boot, task or format, or has a
  //                        change that cannot be repeated
  //   others               errors of the disk or of `sink`
  absl::StatusOr<std::optional<Content>> Read(
      absl::FunctionRef<absl::Status(const ServerLogEntry&)> sink) const;

  // Begins to record after `content`, which Read() has returned and whose state
  // this process has.
  absl::Status Continue(const Content& content) ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes what the folder has, and begins to record an empty state.
  absl::Status BeginEmpty(uint64_t state_id) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  // ---- Records.

  // Writes a record and gives it the next number. Callers order their calls. If
  // the log is not kept, does nothing. If the record cannot be written, removes
  // the log.
  //   kDataLoss  the record cannot be written and the log cannot be removed:
  //              the change must not be made
  absl::Status Append(proto::ServerLogRecord record,
                      absl::Span<const absl::Span<const uint8_t>> pieces = {})
      override ABSL_LOCKS_EXCLUDED(mutex_);

  // Removes the log and records nothing more.
  absl::Status Abandon(absl::string_view why) ABSL_LOCKS_EXCLUDED(mutex_);

  // As Abandon(), because the state is not needed any more.
  absl::Status Remove() ABSL_LOCKS_EXCLUDED(mutex_);

  // True if all changes are recorded.
  bool is_kept() const { return is_kept_.load(std::memory_order_acquire); }
  bool is_recording() const override { return is_kept(); }
  // The number of the newest record; 0 if the log is not kept.
  int64_t number() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Identifies the state that is recorded.
  uint64_t state_id() const ABSL_LOCKS_EXCLUDED(mutex_);

  // ---- Snapshots, taken by one thread.

  // Blocks until a snapshot should be taken. Returns false after Stop().
  bool AwaitSnapshotDue() ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes AwaitSnapshotDue() return true: something that is not recorded has
  // changed the state.
  void RequestSnapshot() override ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends AwaitSnapshotDue().
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  // True if the records since the last snapshot are many, so that the next one
  // should be written without rests.
  bool is_hurried() const ABSL_LOCKS_EXCLUDED(mutex_);

  // A snapshot that is being written. Removes its file unless it was finished.
  class Snapshot {
   public:
    ~Snapshot();
    // Not thread-safe.
    absl::Status Append(
        const proto::ServerLogRecord& record,
        absl::Span<const absl::Span<const uint8_t>> pieces = {});

   private:
    friend class ServerLog;
    Disk* disk_ = nullptr;
    int part_ = 0;
    std::unique_ptr<AppendableFile> segment_;  // Until the switch.
    std::unique_ptr<AppendableFile> file_;
    std::string path_;
    uint64_t state_id_ = 0;
  };

  // Creates the files of the next snapshot and of the segment after it.
  absl::StatusOr<std::unique_ptr<Snapshot>> PrepareSnapshot()
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The snapshot is of the state after the newest record; later records go to
  // the segment after it. No change may be recorded while the state is frozen
  // and this is called. `state_bytes` is the size of the state.
  absl::Status SwitchSegment(Snapshot* snapshot, int64_t state_bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Completes the snapshot and removes the files before it.
  absl::Status FinishSnapshot(std::unique_ptr<Snapshot> snapshot)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives the snapshot up, so that another one is due. Blocks for a moment.
  void DropSnapshot(std::unique_ptr<Snapshot> snapshot)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::string SegmentPath(int part) const;
  std::string SnapshotPath(int part) const;
  // What was read so far.
  struct Progress {
    uint64_t state_id = 0;    // 0 before the first head.
    int64_t next_number = 0;  // 0: any.
  };

  // Parts of Read(). ReadSegment() returns false if the file is empty, and
  // TakeHead() then fails with kNotFound.
  absl::Status ReadSnapshot(
      int part, absl::FunctionRef<absl::Status(const ServerLogEntry&)> sink,
      Progress* progress) const;
  absl::StatusOr<bool> ReadSegment(
      int part, absl::FunctionRef<absl::Status(const ServerLogEntry&)> sink,
      Progress* progress) const;
  absl::Status TakeHead(LogFileReader* reader, absl::string_view path,
                        Progress* progress) const;
  // Returns the first record of a file.
  //   kNotFound  there is none
  //   others     as Read()
  absl::StatusOr<proto::ServerLogHead> ReadHead(LogFileReader* reader,
                                                absl::string_view path) const;
  absl::Status CheckHead(const proto::ServerLogHead& head,
                         absl::string_view path) const;
  absl::StatusOr<std::unique_ptr<AppendableFile>> CreateFile(
      const std::string& path) const;
  proto::ServerLogRecord Head(int64_t first_number) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status BeginSegment(int part, uint64_t state_id, int64_t last_number)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status RemoveFilesBefore(int part) const;
  absl::Status AbandonLocked(absl::string_view why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status RemoveLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns why so many records are not to be logged; empty if they are.
  std::string TooMuch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t SnapshotBytes() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool IsDue() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const Options options_;
  std::atomic<bool> is_kept_{false};

  mutable absl::Mutex mutex_;
  std::unique_ptr<AppendableFile> file_ ABSL_GUARDED_BY(mutex_);
  int part_ ABSL_GUARDED_BY(mutex_) = 0;  // The number of file_.
  uint64_t state_id_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t number_ ABSL_GUARDED_BY(mutex_) = 0;
  // The size of the segments that Read() would read, without file_.
  int64_t earlier_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t state_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Bytes recorded since a time, to measure the rate.
  int64_t measured_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time measured_since_ ABSL_GUARDED_BY(mutex_);
  bool is_requested_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_writing_snapshot_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // PS_LOG_SERVER_LOG_H_
