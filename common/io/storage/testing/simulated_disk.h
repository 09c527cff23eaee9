#ifndef COMMON_IO_STORAGE_TESTING_SIMULATED_DISK_H_
#define COMMON_IO_STORAGE_TESTING_SIMULATED_DISK_H_

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/io/storage/disk.h"

namespace muster {

// Files in memory that track what would survive a power failure: synced bytes,
// and names in synced folders. As adverse as POSIX permits: truncating an
// existing file takes effect at once, and any subset of unsynced name changes
// may survive.
//
// Operations are all calls that change something, counted from 1. Thread-safe.
class SimulatedDisk final : public Disk {
 public:
  enum class Crash {
    kProcessKilled,  // The machine keeps running: nothing is lost.
    kUnsyncedLost,   // All unsynced changes are lost.
    // A random part of the unsynced changes survives: of each append nothing,
    // its beginning or all of it, independently of earlier ones.
    kUnsyncedAtRandom
  };

  // Operation `number` returns `error` and changes nothing, except that an
  // Append() writes half of its bytes. CreateExclusive() is two operations: the
  // second one makes the name durable.
  void FailOperation(int64_t number, absl::Status error);

  // All operations from `number` on fail and change nothing.
  void StopAtOperation(int64_t number);

  // Sets the maximum total size of all files. Append() then writes only the
  // bytes that fit, and fails with kResourceExhausted.
  void set_capacity_bytes(int64_t capacity_bytes);

  int64_t operation_count() const;

  // Returns the disk after the crash. `seed` is for kUnsyncedAtRandom.
  std::unique_ptr<SimulatedDisk> After(Crash crash, uint64_t seed = 0) const;

  // Returns the paths of all files.
  std::vector<std::string> Paths() const;
  // Writes a file, unaffected by faults. Creates it if needed. The contents are
  // synced.
  void Set(absl::string_view path, absl::string_view content);
  // Returns "" if there is no such file.
  std::string Get(absl::string_view path) const;

  bool CreatesAtomically(absl::string_view) const override { return false; }
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(
      absl::string_view path) override;
  absl::Status CreateExclusive(absl::string_view path,
                               absl::string_view content) override;
  absl::StatusOr<std::unique_ptr<AppendableFile>> AppendFile(
      absl::string_view path) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(
      absl::string_view path) override;
  absl::Status Rename(absl::string_view from, absl::string_view to) override;
  absl::Status Remove(absl::string_view path) override;
  absl::Status MakeFolder(absl::string_view folder) override;
  absl::Status SyncFolder(absl::string_view folder) override;
  absl::StatusOr<std::vector<std::string>> List(
      absl::string_view folder) override;

 private:
  class Writer;
  class Appender;
  class Reader;

  struct File {
    std::string content;
    size_t synced_bytes = 0;
    // The ends of the appends since the last sync.
    std::vector<size_t> append_ends;
  };
  using Names = std::map<std::string, std::shared_ptr<File>>;
  struct NameChange {
    std::string removed;  // Empty: none.
    std::string added;    // Empty: none.
    std::shared_ptr<File> file;
  };

  absl::Status BeginOperation(absl::string_view what, absl::string_view path)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void Apply(const NameChange& change, Names* names);
  void Record(NameChange change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Append(absl::string_view path, absl::Span<const uint8_t> bytes,
                      File* file) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Sync(absl::string_view path, File* file)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds the names that were changed in the folder to the synced names.
  void SyncNames(absl::string_view folder)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t UsedBytes() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  Names names_ ABSL_GUARDED_BY(mutex_);
  Names synced_names_ ABSL_GUARDED_BY(mutex_);
  std::vector<NameChange> unsynced_changes_ ABSL_GUARDED_BY(mutex_);
  int64_t operation_count_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t stop_at_ ABSL_GUARDED_BY(mutex_) =
      std::numeric_limits<int64_t>::max();
  std::map<int64_t, absl::Status> failures_ ABSL_GUARDED_BY(mutex_);
  int64_t capacity_bytes_ ABSL_GUARDED_BY(mutex_) =
      std::numeric_limits<int64_t>::max();
};

}  // namespace muster

#endif  // COMMON_IO_STORAGE_TESTING_SIMULATED_DISK_H_
