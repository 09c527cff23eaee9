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

// The seam through which everything that stores reaches files, so that tests
// can fail any operation and can ask what a power cut leaves behind.
//
// Paths are the system's. Errors name the path and what the system said:
//   kNotFound           no such file or folder
//   kResourceExhausted  no space, no quota, or a file as long as is allowed
//   others              as absl::ErrnoToStatus() has it

// A new file, written from its beginning on. Not thread-safe.
class WritableFile {
 public:
  static constexpr size_t kPageBytes = 4096;

  // Closes it. What was not synced may be lost.
  virtual ~WritableFile() = default;

  // At best pages, that is kPageBytes at a multiple of that, in memory as in
  // the file: many of them in a row are written without the system's copy,
  // where the file system can.
  virtual absl::Status Append(absl::Span<const uint8_t> bytes) = 0;

  // Everything appended outlives a power cut when this returns OK. Never to be
  // tried again when it does not: the system may have dropped what it could not
  // write, and a second call would not notice.
  virtual absl::Status Sync() = 0;
};

// Thread-safe.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;

  // When it was opened.
  virtual int64_t size_bytes() const = 0;

  // Fills `bytes` with what lies at `offset`.
  //   kDataLoss  the file ends before that
  virtual absl::Status ReadAt(int64_t offset, absl::Span<uint8_t> bytes) = 0;
};

// Thread-safe.
class Disk {
 public:
  virtual ~Disk() = default;

  // Empties the file where there is one.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Create(
      absl::string_view path) = 0;

  //   kInvalidArgument  not a regular file
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> Open(
      absl::string_view path) = 0;

  // Replaces `to` where there is one, in one step.
  virtual absl::Status Rename(absl::string_view from, absl::string_view to) = 0;

  virtual absl::Status Remove(absl::string_view path) = 0;

  // The folder and those it lies in, as far as they are missing; synced.
  virtual absl::Status MakeFolder(absl::string_view folder) = 0;

  // Names that were created, renamed or removed in the folder outlive a power
  // cut when this returns OK.
  virtual absl::Status SyncFolder(absl::string_view folder) = 0;

  // Names of what lies in the folder, sorted.
  virtual absl::StatusOr<std::vector<std::string>> List(
      absl::string_view folder) = 0;

  // The machine's. Lives as long as the process.
  static Disk* Real();
};

// "." for a path without one.
absl::string_view FolderOf(absl::string_view path);
// What comes after the folder.
absl::string_view BaseName(absl::string_view path);
// `folder` is a folder, or "" or "." for the current one.
std::string JoinPath(absl::string_view folder, absl::string_view name);

// The whole file; for small ones.
//   kResourceExhausted  longer than `size_bytes_max`
absl::StatusOr<std::string> ReadFile(Disk* disk, absl::string_view path,
                                     int64_t size_bytes_max);

// Puts `content` in the place of the file: beside it, synced, renamed, folder
// synced. Readers see the old file or the whole new one, also after a crash.
absl::Status ReplaceFile(Disk* disk, absl::string_view path,
                         absl::string_view content);

// The file beside `path` that ReplaceFile() writes first.
std::string TemporaryPath(absl::string_view path);

}  // namespace muster

#endif  // COMMON_IO_CHECKPOINT_DISK_H_
