#ifndef COMMON_IO_CHECKPOINT_DISK_H_
#define COMMON_IO_CHECKPOINT_DISK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace muster {

// The interface to files for everything that is stored. Tests use it to fail
// operations and to simulate power failures.
//
// Paths are those of the system. Errors name the path and the system's error:
//   kNotFound           the file or folder does not exist
//   kResourceExhausted  no space, the quota, or the limit on file sizes
//   others              as absl::ErrnoToStatus()

// A new file, written sequentially. Not thread-safe.
class WritableFile {
 public:
  static constexpr size_t kPageBytes = 4096;

  // Closes the file. Data that was not synced may be lost.
  virtual ~WritableFile() = default;

  // Appends bytes. Aligned pages (kPageBytes at a multiple of kPageBytes in
  // memory and in the file) are fastest: many consecutive ones are written
  // without a copy in the page cache if the file system supports it.
  virtual absl::Status Append(absl::Span<const uint8_t> bytes) = 0;

  // After OK, everything appended survives a power failure. Must not be retried
  // after an error: the system may have dropped the data, and a second call
  // would not report it.
  virtual absl::Status Sync() = 0;
};

// Thread-safe.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;

  // The size when the file was opened.
  virtual int64_t size_bytes() const = 0;

  // Fills `bytes` from `offset`.
  //   kDataLoss  the file ends before that
  virtual absl::Status ReadAt(int64_t offset, absl::Span<uint8_t> bytes) = 0;
};

// Thread-safe.
class Disk {
 public:
  virtual ~Disk() = default;

  // Truncates an existing file.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Create(
      absl::string_view path) = 0;

  //   kInvalidArgument  not a regular file
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> Open(
      absl::string_view path) = 0;

  // Replaces an existing `to` atomically.
  virtual absl::Status Rename(absl::string_view from, absl::string_view to) = 0;

  virtual absl::Status Remove(absl::string_view path) = 0;

  // Creates the folder and its missing parents, and syncs them.
  virtual absl::Status MakeFolder(absl::string_view folder) = 0;

  // After OK, names that were created, renamed or removed in the folder survive
  // a power failure.
  virtual absl::Status SyncFolder(absl::string_view folder) = 0;

  // Returns the names of the entries of the folder, sorted.
  virtual absl::StatusOr<std::vector<std::string>> List(
      absl::string_view folder) = 0;

  // The disk of this machine. Lives as long as the process.
  static Disk* Real();
};

// Returns the folder of `path`; "." if it has none.
absl::string_view FolderOf(absl::string_view path);
// Returns the part of `path` after the folder.
absl::string_view BaseName(absl::string_view path);
// Joins a folder and a name. `folder` may be "" or "." for the current folder.
std::string JoinPath(absl::string_view folder, absl::string_view name);

// Reads a whole small file.
//   kResourceExhausted  larger than `size_bytes_max`
absl::StatusOr<std::string> ReadFile(Disk* disk, absl::string_view path,
                                     int64_t size_bytes_max);

// Replaces the contents of the file: writes a temporary file, syncs and renames
// it, and syncs the folder. Readers see the old or the new contents, even after
// a crash.
absl::Status ReplaceFile(Disk* disk, absl::string_view path,
                         absl::string_view content);

// Returns the path of the temporary file of ReplaceFile().
std::string TemporaryPath(absl::string_view path);

}  // namespace muster

#endif  // COMMON_IO_CHECKPOINT_DISK_H_
