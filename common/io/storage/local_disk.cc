#include "common/io/storage/local_disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/io/storage/private_file.h"

namespace muster {
namespace {

// Starts writing to the device early, so that it overlaps with computation and
// leaves less for Sync().
constexpr int64_t kWriteBackBytes = 8 << 20;

// For smaller writes, waiting for the device takes longer than the copy.
constexpr size_t kDirectBytesMin = 256 << 10;

absl::Status SystemError(absl::string_view attempted, absl::string_view path) {
  const int error = errno;
  const std::string what = absl::StrCat("cannot ", attempted, " ", path);
  if (error == EFBIG || error == EDQUOT) {
    return absl::ResourceExhaustedError(
        absl::StrCat(what, ": ", std::strerror(error)));
  }
  return absl::ErrnoToStatus(error, what);
}

absl::Span<const uint8_t> BytesOf(absl::string_view text) {
  return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(text.data()),
                             text.size());
}

// Creates a file with a random name in the folder of `path`, and returns its
// descriptor.
absl::StatusOr<int> CreateBeside(absl::string_view path, mode_t mode,
                                 std::string* name) {
  *name = TemporaryPath(
      absl::StrCat(path, ".", absl::Hex(RandomIdentity(), absl::kZeroPad16)));
  const int descriptor = open(
      name->c_str(),
      O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, mode);
  if (descriptor < 0) return SystemError("create", *name);
  return descriptor;
}

// True if the file has two names. On NFS, link(2) may fail although the link
// was made, because the response was lost and the repeated request found the
// link. Keeps errno.
bool IsLinkedTwice(int descriptor) {
  const int error = errno;
  struct stat status;
  const bool is_linked_twice =
      fstat(descriptor, &status) == 0 && status.st_nlink == 2;
  errno = error;
  return is_linked_twice;
}

// Returns the size of the file that open(2) returned for `path`. Closes the
// descriptor after an error. Errors are those of ReadDescriptor().
absl::StatusOr<int64_t> SizeOfRegularFile(absl::string_view path,
                                          int descriptor) {
  if (descriptor < 0) return SystemError("open", path);
  absl::Cleanup close_file = [&] { close(descriptor); };
  struct stat status;
  if (fstat(descriptor, &status) != 0) return SystemError("stat", path);
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is not a regular file"));
  }
  std::move(close_file).Cancel();
  return int64_t{status.st_size};
}

// Writes pages with O_DIRECT if possible. Filling new pages of the page cache
// costs several times more processor time than all other work of a save, and
// would evict pages that training reads.
class LocalWritableFile final : public WritableFile {
 public:
  LocalWritableFile(std::string path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}
  ~LocalWritableFile() override { close(descriptor_); }

  absl::Status Append(absl::Span<const uint8_t> bytes) override {
    while (!bytes.empty()) {
      const size_t direct_bytes = DirectBytes(bytes);
      PassCache(direct_bytes > 0);
      const size_t count = passes_cache_ ? direct_bytes : bytes.size();
      const ssize_t written = write(descriptor_, bytes.data(), count);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0 && errno == EINVAL && may_pass_cache_ && passes_cache_) {
        may_pass_cache_ = false;  // The device needs another alignment.
        continue;
      }
      if (written < 0) return SystemError("write", path_);
      bytes.remove_prefix(written);
      size_bytes_ += written;
    }
    if (!passes_cache_) StartWriteBack();
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    return fsync(descriptor_) == 0 ? absl::OkStatus()
                                   : SystemError("sync", path_);
  }

  absl::Status Close() override { return absl::OkStatus(); }

 private:
  // Returns how many of the first bytes of `bytes` can bypass the page cache.
  size_t DirectBytes(absl::Span<const uint8_t> bytes) const {
    const bool is_page =
        reinterpret_cast<uintptr_t>(bytes.data()) % WritableFile::kPageBytes ==
            0 &&
        size_bytes_ % WritableFile::kPageBytes == 0;
    if (!may_pass_cache_ || !is_page || bytes.size() < kDirectBytesMin) {
      return 0;
    }
    return bytes.size() - bytes.size() % WritableFile::kPageBytes;
  }

  void PassCache(bool passes) {
    if (passes == passes_cache_) return;
    const int flags = fcntl(descriptor_, F_GETFL);
    const int wanted = passes ? flags | O_DIRECT : flags & ~O_DIRECT;
    const bool is_done = flags >= 0 && fcntl(descriptor_, F_SETFL, wanted) == 0;
    if (!is_done) may_pass_cache_ = false;  // For example, tmpfs.
    passes_cache_ = passes && is_done;
  }

  void StartWriteBack() {
    if (size_bytes_ - handed_over_bytes_ < kWriteBackBytes) return;
    // A hint. Sync() writes the rest and reports errors.
    (void)sync_file_range(descriptor_, handed_over_bytes_,
                          size_bytes_ - handed_over_bytes_,
                          SYNC_FILE_RANGE_WRITE);
    handed_over_bytes_ = size_bytes_;
  }

  const std::string path_;
  const int descriptor_;
  int64_t size_bytes_ = 0;
  int64_t handed_over_bytes_ = 0;
  bool may_pass_cache_ = true;
  bool passes_cache_ = false;
};

class LocalAppendableFile final : public AppendableFile {
 public:
  LocalAppendableFile(std::string path, int descriptor, int64_t size_bytes)
      : path_(std::move(path)),
        descriptor_(descriptor),
        size_bytes_(size_bytes) {}
  ~LocalAppendableFile() override { close(descriptor_); }

  int64_t size_bytes() const override { return size_bytes_; }

  absl::Status Append(absl::Span<const uint8_t> bytes) override {
    RETURN_IF_ERROR(error_);
    while (!bytes.empty()) {
      const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return error_ = SystemError("append to", path_);
      bytes.remove_prefix(written);
      size_bytes_ += written;
    }
    return absl::OkStatus();
  }

  // The size is the only metadata that reading needs, and fdatasync() includes
  // it.
  absl::Status Sync() override {
    RETURN_IF_ERROR(error_);
    if (fdatasync(descriptor_) != 0) error_ = SystemError("sync", path_);
    return error_;
  }

 private:
  const std::string path_;
  const int descriptor_;
  int64_t size_bytes_;
  absl::Status error_;  // The first one.
};

class LocalReadableFile final : public ReadableFile {
 public:
  LocalReadableFile(std::string path, int descriptor, int64_t size_bytes)
      : path_(std::move(path)),
        descriptor_(descriptor),
        size_bytes_(size_bytes) {}
  ~LocalReadableFile() override { close(descriptor_); }

  int64_t size_bytes() const override { return size_bytes_; }

  absl::Status ReadAt(int64_t offset, absl::Span<uint8_t> bytes) override {
    while (!bytes.empty()) {
      const ssize_t count =
          pread(descriptor_, bytes.data(), bytes.size(), offset);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        return SystemError(absl::StrCat("read at offset ", offset, " of"),
                           path_);
      }
      if (count == 0) {
        return absl::DataLossError(absl::StrCat(path_, " ends at offset ",
                                                offset, "; expected ",
                                                bytes.size(), " more bytes"));
      }
      bytes.remove_prefix(count);
      offset += count;
    }
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  const int descriptor_;
  const int64_t size_bytes_;
};

class LocalFileSystem final : public Disk {
 public:
  bool CreatesAtomically(absl::string_view) const override { return false; }

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(
      absl::string_view path) override {
    std::string name(path);
    const int descriptor =
        open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY,
             0644);
    if (descriptor < 0) return SystemError("create", name);
    return std::make_unique<LocalWritableFile>(std::move(name), descriptor);
  }

  // Links a complete file to its name, which fails if the name is taken. A file
  // that is created with O_EXCL under its name is empty at first, and stays so
  // if its writer is killed.
  absl::Status CreateExclusive(absl::string_view path,
                               absl::string_view content) override {
    const std::string name(path);
    std::string beside;
    ASSIGN_OR_RETURN(const int descriptor,
                     CreateBeside(path, /*mode=*/0644, &beside));
    LocalWritableFile file(beside, descriptor);
    const absl::Cleanup remove_beside = [&] { unlink(beside.c_str()); };
    RETURN_IF_ERROR(file.Append(BytesOf(content)));
    RETURN_IF_ERROR(file.Sync());
    if (link(beside.c_str(), name.c_str()) != 0 && !IsLinkedTwice(descriptor)) {
      if (errno != EPERM) return SystemError("create", name);
      return absl::UnimplementedError(absl::StrCat(
          "cannot create ", name,
          " exclusively: the file system has no hard links; expected one that "
          "has them, such as ext4, XFS or NFS"));
    }
    return SyncFolder(FolderOf(name));
  }

  absl::StatusOr<std::unique_ptr<AppendableFile>> AppendFile(
      absl::string_view path) override {
    std::string name(path);
    // O_NONBLOCK: opening a named pipe must not block.
    const int descriptor = open(
        name.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ASSIGN_OR_RETURN(const int64_t size_bytes,
                     SizeOfRegularFile(name, descriptor));
    return std::make_unique<LocalAppendableFile>(std::move(name), descriptor,
                                                 size_bytes);
  }

  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(
      absl::string_view path) override {
    std::string name(path);
    // O_NONBLOCK: opening a named pipe must not block.
    const int descriptor =
        open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return ReadDescriptor(std::move(name), descriptor);
  }

  absl::Status Rename(absl::string_view from, absl::string_view to) override {
    return std::rename(std::string(from).c_str(), std::string(to).c_str()) == 0
               ? absl::OkStatus()
               : SystemError(absl::StrCat("rename ", from, " to"), to);
  }

  absl::Status Remove(absl::string_view path) override {
    return unlink(std::string(path).c_str()) == 0 ? absl::OkStatus()
                                                  : SystemError("remove", path);
  }

  absl::Status MakeFolder(absl::string_view folder) override {
    const std::string name(folder.empty() ? "." : folder);
    if (mkdir(name.c_str(), 0755) == 0) return SyncFolder(FolderOf(name));
    if (errno == ENOENT && FolderOf(name) != name) {
      RETURN_IF_ERROR(MakeFolder(FolderOf(name)));
      if (mkdir(name.c_str(), 0755) == 0) return SyncFolder(FolderOf(name));
    }
    if (errno != EEXIST) return SystemError("make folder", name);
    struct stat status;
    if (stat(name.c_str(), &status) != 0) return SystemError("stat", name);
    if (S_ISDIR(status.st_mode)) return absl::OkStatus();
    errno = ENOTDIR;
    return SystemError("make folder", name);
  }

  absl::Status SyncFolder(absl::string_view folder) override {
    const int descriptor =
        open(std::string(folder).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return SystemError("open folder", folder);
    const absl::Cleanup close_folder = [&] { close(descriptor); };
    return fsync(descriptor) == 0 ? absl::OkStatus()
                                  : SystemError("sync folder", folder);
  }

  absl::StatusOr<std::vector<std::string>> List(
      absl::string_view folder) override {
    DIR* const stream = opendir(std::string(folder).c_str());
    if (stream == nullptr) return SystemError("list folder", folder);
    const absl::Cleanup close_folder = [&] { closedir(stream); };
    std::vector<std::string> names;
    errno = 0;
    for (const dirent* entry; (entry = readdir(stream)) != nullptr;) {
      const absl::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    if (errno != 0) return SystemError("list folder", folder);
    std::sort(names.begin(), names.end());
    return names;
  }
};

}  // namespace

absl::Status ReplacePrivateFile(absl::string_view path,
                                absl::string_view content) {
  std::string beside;
  ASSIGN_OR_RETURN(const int descriptor,
                   CreateBeside(path, /*mode=*/0600, &beside));
  LocalWritableFile file(beside, descriptor);
  absl::Cleanup remove_beside = [&] { unlink(beside.c_str()); };
  RETURN_IF_ERROR(file.Append(BytesOf(content)));
  RETURN_IF_ERROR(file.Sync());
  RETURN_IF_ERROR(LocalDisk()->Rename(beside, path));
  std::move(remove_beside).Cancel();
  return LocalDisk()->SyncFolder(FolderOf(path));
}

absl::StatusOr<std::unique_ptr<ReadableFile>> ReadDescriptor(std::string path,
                                                             int descriptor) {
  ASSIGN_OR_RETURN(const int64_t size_bytes,
                   SizeOfRegularFile(path, descriptor));
  return std::make_unique<LocalReadableFile>(std::move(path), descriptor,
                                             size_bytes);
}

Disk* LocalDisk() {
  static Disk* const disk = new LocalFileSystem;
  return disk;
}

}  // namespace muster
