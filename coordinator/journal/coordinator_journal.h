#ifndef COORDINATOR_JOURNAL_COORDINATOR_JOURNAL_H_
#define COORDINATOR_JOURNAL_COORDINATOR_JOURNAL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/io/storage/disk.h"
#include "proto/coordinator_journal.pb.h"

namespace muster {

// The journal of one coordinator: what a later coordinator of the job needs to
// continue it. Each coordinator writes files of its own, whose names contain
// its coordinator epoch. Nothing that an earlier coordinator still appends is
// therefore read as a record of a later one.
//
// The first file of an epoch is created exclusively, so two coordinators never
// have the same epoch. A file that has grown to file_bytes_max is followed by
// another one that begins with the whole state, or grows to twice that state.
// In an object store, where files cannot grow, each record replaces the file of
// the epoch with the whole state.
//
// After an error of the disk every further call returns that error, because
// what was written may be lost. A state that could not be put into an object
// store in the background is only logged: the next one replaces it.
//
// Thread-safe.
class CoordinatorJournal {
 public:
  struct Options {
    std::string folder;
    // Who writes, for messages: "process 4711 on host h0". Differs between
    // processes.
    std::string opened_by;
    int64_t file_bytes_max = int64_t{64} << 20;
    Disk* disk = Disk::Real();  // Borrowed.
  };

  // Begins the next coordinator epoch of the folder, which it creates.
  //   kUnimplemented  the object store cannot create objects exclusively
  //   others          the folder cannot be read or written
  static absl::StatusOr<std::unique_ptr<CoordinatorJournal>> Open(
      Options options);

  // Writes what is pending.
  ~CoordinatorJournal();

  CoordinatorJournal(const CoordinatorJournal&) = delete;
  CoordinatorJournal& operator=(const CoordinatorJournal&) = delete;

  const std::string& folder() const { return options_.folder; }
  // The number of this coordinator among those of the job, from 1.
  uint64_t epoch() const { return epoch_; }

  // Returns how the newest coordinator of the folder has ended the job; nullopt
  // if it has not, or if there is none.
  //   errors as ReadPredecessor()
  static absl::StatusOr<std::optional<proto::JournalEnd>> ReadEnd(
      Disk* disk, const std::string& folder);

  // Returns the state that the newest earlier coordinator has recorded; nullopt
  // if there is none. An earlier coordinator may still be running. Its state
  // is final once all workers and servers refuse it.
  //   kDataLoss  the journal is damaged; the message says where, and what to do
  absl::StatusOr<std::optional<proto::JournalRecord>> ReadPredecessor() const {
    return ReadNewest(options_.disk, options_.folder, epoch_);
  }

  // Writes the whole state with which this coordinator begins, which needs
  // `job`, and removes the files of earlier coordinators. Call it once, before
  // Write().
  absl::Status Begin(const proto::JournalRecord& state)
      ABSL_LOCKS_EXCLUDED(writing_, mutex_);

  // Appends a change and blocks until it survives a power failure. Drops what
  // is pending.
  absl::Status Write(const proto::JournalRecord& change)
      ABSL_LOCKS_EXCLUDED(writing_, mutex_);

  // Appends a change in the background. `on_durable` is then called on another
  // thread, unless a later Write() is durable first. Replaces a change that is
  // still pending.
  void WriteLater(proto::JournalRecord change, std::function<void()> on_durable)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the first error of the disk.
  absl::Status status() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Pending {
    proto::JournalRecord change;
    std::function<void()> on_durable;
  };

  CoordinatorJournal(Options options, uint64_t epoch,
                     std::unique_ptr<AppendableFile> file);
  // Appends a record to the file, or replaces the object.
  absl::Status AddToFile(const proto::JournalRecord& change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);
  // Puts the whole state into the object store.
  absl::Status PutState() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);

  // Returns the state that the newest coordinator of an epoch below `epoch_end`
  // has recorded. Lists the folder again if a file was removed meanwhile.
  static absl::StatusOr<std::optional<proto::JournalRecord>> ReadNewest(
      Disk* disk, const std::string& folder, uint64_t epoch_end,
      int attempt = 1);
  std::string PathOf(uint64_t epoch, int part) const;
  void RunLoop() ABSL_LOCKS_EXCLUDED(writing_, mutex_);
  absl::Status Append(const proto::JournalRecord& change, bool may_fail)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status AppendToFile(const proto::JournalRecord& change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);
  // Continues in another file if the current one is full.
  absl::Status Rotate() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);
  absl::Status RemoveFilesOfOthers();
  bool MayWake() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return pending_.has_value() || is_stopping_;
  }

  const Options options_;
  const uint64_t epoch_;

  // Held while a record is written.
  absl::Mutex writing_ ABSL_ACQUIRED_BEFORE(mutex_);
  // Null in an object store.
  std::unique_ptr<AppendableFile> file_ ABSL_GUARDED_BY(writing_);
  int part_ ABSL_GUARDED_BY(writing_) = 0;
  // The size of the whole state at the beginning of the file.
  int64_t first_record_bytes_ ABSL_GUARDED_BY(writing_) = 0;
  // All records of this coordinator merged.
  proto::JournalRecord state_ ABSL_GUARDED_BY(writing_);

  mutable absl::Mutex mutex_;
  std::optional<Pending> pending_ ABSL_GUARDED_BY(mutex_);
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // Constant after construction.
};

// Applies a record to the state that the records before it describe.
void MergeJournalRecord(const proto::JournalRecord& change,
                        proto::JournalRecord* state);

}  // namespace muster

#endif  // COORDINATOR_JOURNAL_COORDINATOR_JOURNAL_H_
