#ifndef COMMON_IO_CHECKPOINT_TESTING_SIMULATED_DISK_H_
#define COMMON_IO_CHECKPOINT_TESTING_SIMULATED_DISK_H_

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
#include "common/io/checkpoint/disk.h"

namespace muster {

// Files in memory that keep apart what a program sees and what a power cut
// would leave: bytes that were synced, and names whose folder was. As hostile
// as POSIX allows: emptying a file by creating it again takes effect at once,
// and changes of names that were not synced survive in any combination.
//
// Operations are all calls that change something, counted from 1. Thread-safe.
class SimulatedDisk final : public Disk {
 public:
  enum class Crash {
    kProcessKilled,    // The machine lives on: nothing is lost.
    kUnsyncedLost,     // All that was not synced is gone.
    kUnsyncedAtRandom  // Parts of it are there.
  };

  // Operation `number` returns `error` and changes nothing, except that an
  // Append() takes half of its bytes.
  void FailOperation(int64_t number, absl::Status error);

  // From operation `number` on, all fail and change nothing.
  void StopAtOperation(int64_t number);

  // What all files hold together; Append() fails with kResourceExhausted when
  // there is no more room, after taking what there is room for.
  void set_capacity_bytes(int64_t capacity_bytes);

  int64_t operation_count() const;

  // The disk as it is found after the crash. `seed` is for kUnsyncedAtRandom.
  std::unique_ptr<SimulatedDisk> After(Crash crash, uint64_t seed = 0) const;

  // Paths of all files.
  std::vector<std::string> Paths() const;
  // Past all faults. The file need not exist; what is set is synced.
  void Set(absl::string_view path, absl::string_view content);
  // Empty for no such file.
  std::string Get(absl::string_view path) const;

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(
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
  class Reader;

  struct File {
    std::string content;
    size_t synced_bytes = 0;
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

#endif  // COMMON_IO_CHECKPOINT_TESTING_SIMULATED_DISK_H_
