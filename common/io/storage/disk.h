#ifndef COMMON_IO_STORAGE_DISK_H_
#define COMMON_IO_STORAGE_DISK_H_

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
// Paths are those of the system, or URLs of an object store (object_url.h).
// Errors name the path and the system's or the store's error:
//   kNotFound           the file or folder does not exist
//   kResourceExhausted  no space, the quota, or the limit on file sizes
//   others              as absl::ErrnoToStatus(), or as ObjectStore

// A new file, written sequentially. Not thread-safe.
class WritableFile {
 public:
  static constexpr size_t kPageBytes = 4096;

  // Unless Sync() or Close() returned OK, the contents are undefined, and an
  // object is not written at all.
  virtual ~WritableFile() = default;

  // Appends bytes. Aligned pages (kPageBytes at a multiple of kPageBytes in
  // memory and in the file) are fastest: many consecutive ones are written
  // without a copy in the page cache if the file system supports it.
  virtual absl::Status Append(absl::Span<const uint8_t> bytes) = 0;

  // Completes the file: after OK, everything appended survives a power failure.
  // Must not be retried after an error: the system may have dropped the data,
  // and a second call would not report it. Nothing may be appended afterwards.
  virtual absl::Status Sync() = 0;

  // As Sync(), without waiting for the device: readers see everything appended,
  // and a power failure may lose it.
  virtual absl::Status Close() = 0;
};

// A file that grows at its end, for records that must be durable before they
// are used. Not thread-safe.
//
// A power failure may tear what was appended after the last Sync(): any bytes
// of it may be missing or zero, also those before bytes that have survived.
class AppendableFile {
 public:
  virtual ~AppendableFile() = default;

  // The size of the file: where the next Append() writes.
  virtual int64_t size_bytes() const = 0;

  // Appends bytes, which readers see at once. After an error an unknown part of
  // them is in the file, and each later call returns that error.
  virtual absl::Status Append(absl::Span<const uint8_t> bytes) = 0;

  // May be called any number of times. After OK, everything appended survives a
  // power failure. After an error the system may have dropped the data, so each
  // later call returns that error.
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

  // True if a file that Create() returns appears at `path` as a whole, and only
  // when it is completed, as an object does. Until then readers see the
  // previous content. Such paths cannot be renamed and need not be.
  virtual bool CreatesAtomically(absl::string_view path) const = 0;

  // Truncates an existing file, unless CreatesAtomically().
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Create(
      absl::string_view path) = 0;

  // Creates a file that contains `content`, unless there is one at `path`. If
  // several processes call this at the same time, one of them succeeds. The
  // file appears as a whole. After OK, its content and its name survive a power
  // failure. After an error other than kAlreadyExists it may exist or appear
  // later.
  //
  // Callers that compete pass different contents. An object store may repeat a
  // request whose response was lost, and the content shows whose object it is.
  //   kAlreadyExists  there is a file at `path`, and it is not changed
  //   kUnimplemented  the object store, or the file system, cannot do this
  virtual absl::Status CreateExclusive(absl::string_view path,
                                       absl::string_view content) = 0;

  // Opens an existing file to append to it. Only one process may append to a
  // file.
  //   kInvalidArgument  not a regular file
  //   kUnimplemented    objects cannot grow
  virtual absl::StatusOr<std::unique_ptr<AppendableFile>> AppendFile(
      absl::string_view path) = 0;

  //   kInvalidArgument  not a regular file
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> Open(
      absl::string_view path) = 0;

  // Replaces an existing `to` atomically.
  //   kUnimplemented  objects have no such operation
  virtual absl::Status Rename(absl::string_view from, absl::string_view to) = 0;

  virtual absl::Status Remove(absl::string_view path) = 0;

  // Creates the folder and its missing parents, and syncs them. Object stores
  // have no folders: does nothing.
  virtual absl::Status MakeFolder(absl::string_view folder) = 0;

  // After OK, names that were created, renamed or removed in the folder survive
  // a power failure.
  virtual absl::Status SyncFolder(absl::string_view folder) = 0;

  // Returns the names of the entries of the folder, sorted. A folder of an
  // object store exists as long as it has an entry.
  virtual absl::StatusOr<std::vector<std::string>> List(
      absl::string_view folder) = 0;

  // Returns the disk of this machine's files, and of the objects of s3:// and
  // gs:// URLs. Lives as long as the process.
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

// Replaces the contents of the file. Readers see the old or the new contents,
// even after a crash. Unless the disk creates files atomically, writes and
// renames a temporary file.
absl::Status ReplaceFile(Disk* disk, absl::string_view path,
                         absl::string_view content);

// As ReplaceFile(), without waiting for the device: a power failure may leave
// an empty file. For files that processes exchange.
absl::Status ReplaceFileUnsynced(Disk* disk, absl::string_view path,
                                 absl::string_view content);

// Returns the path of the temporary file of ReplaceFile().
std::string TemporaryPath(absl::string_view path);

}  // namespace muster

#endif  // COMMON_IO_STORAGE_DISK_H_
