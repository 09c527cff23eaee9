#include "ps/client/client_segment.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

absl::Status Exhausted(absl::string_view what, size_t size_bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat(what, " of ", size_bytes, " bytes: ", std::strerror(errno)));
}

absl::StatusOr<std::shared_ptr<Buffer>> Map(const FileDescriptor& file,
                                            size_t size_bytes) {
  void* const data = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                          MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) return Exhausted("mapping a segment", size_bytes);
  return Buffer::Wrap(data, size_bytes,
                      [data, size_bytes] { munmap(data, size_bytes); });
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClientSegment>> ClientSegment::Create(
    size_t size_bytes) {
  FileDescriptor file(
      memfd_create("muster_ps", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.is_open() ||
      ftruncate(file.get(), static_cast<off_t>(size_bytes)) != 0 ||
      fcntl(file.get(), F_ADD_SEALS,
            F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return Exhausted("a segment", size_bytes);
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Buffer> memory, Map(file, size_bytes));
  return std::unique_ptr<ClientSegment>(
      new ClientSegment(std::move(file), std::move(memory)));
}

bool ClientSegment::TakePages(size_t offset, size_t size_bytes) {
  return fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                   static_cast<off_t>(size_bytes)) == 0;
}

absl::StatusOr<std::shared_ptr<Buffer>> MapClientSegment(
    const FileDescriptor& file, size_t size_bytes_max) {
  struct stat status = {};
  struct statfs system = {};
  const int seals = fcntl(file.get(), F_GET_SEALS);
  // An access beyond the end of a shrunk file, or to huge pages that cannot be
  // allocated, kills the process with SIGBUS. Therefore only a tmpfs file that
  // cannot shrink is mapped.
  if (fstat(file.get(), &status) != 0 || fstatfs(file.get(), &system) != 0 ||
      system.f_type != TMPFS_MAGIC || seals < 0 ||
      (seals & F_SEAL_SHRINK) == 0 || (seals & F_SEAL_WRITE) != 0) {
    return absl::InvalidArgumentError(
        "the file that the client shares is not memory of a fixed size");
  }
  const auto size_bytes = static_cast<size_t>(status.st_size);
  if (size_bytes == 0 || size_bytes > size_bytes_max) {
    return absl::InvalidArgumentError(
        absl::StrCat("a segment of ", size_bytes,
                     " bytes was offered; expected at most ", size_bytes_max));
  }
  return Map(file, size_bytes);
}

}  // namespace muster
