#include "common/net/collectives/shm/shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster::internal {
namespace {

absl::Status Exhausted(absl::string_view what, size_t size_bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat(what, " of ", size_bytes, " bytes: ", strerror(errno)));
}

absl::StatusOr<uint8_t*> Map(int fd, size_t size_bytes, int flags) {
  void* data = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                    flags | MAP_POPULATE, fd, 0);
  if (data == MAP_FAILED) return Exhausted("mapping", size_bytes);
  return static_cast<uint8_t*>(data);
}

}  // namespace

absl::StatusOr<MappedMemory> MappedMemory::Private(size_t size_bytes) {
  const absl::StatusOr<uint8_t*> data =
      Map(-1, size_bytes, MAP_PRIVATE | MAP_ANONYMOUS);
  if (!data.ok()) return data.status();
  return MappedMemory(*data, size_bytes);
}

absl::StatusOr<MappedMemory> MappedMemory::Shared(const FileDescriptor& segment,
                                                  size_t size_bytes) {
  struct stat stat;
  // Accessing a page beyond the end of a file raises SIGBUS.
  if (fstat(segment.get(), &stat) != 0 ||
      static_cast<size_t>(stat.st_size) < size_bytes ||
      (fcntl(segment.get(), F_GET_SEALS) & F_SEAL_SHRINK) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a segment of ", size_bytes, " bytes"));
  }
  const absl::StatusOr<uint8_t*> data =
      Map(segment.get(), size_bytes, MAP_SHARED);
  if (!data.ok()) return data.status();
  return MappedMemory(*data, size_bytes);
}

MappedMemory::MappedMemory(MappedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

MappedMemory& MappedMemory::operator=(MappedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

MappedMemory::~MappedMemory() {
  if (data_ != nullptr) munmap(data_, size_bytes_);
}

absl::StatusOr<FileDescriptor> CreateSegment(size_t size_bytes) {
  FileDescriptor segment(
      memfd_create("muster", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!segment.is_open()) return Exhausted("memory file", size_bytes);
  // Allocates the pages now: running out of memory later would raise a signal.
  if (fallocate(segment.get(), 0, 0, static_cast<off_t>(size_bytes)) != 0) {
    return Exhausted("memory file", size_bytes);
  }
  if (fcntl(segment.get(), F_ADD_SEALS,
            F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return Exhausted("sealing a memory file", size_bytes);
  }
  return segment;
}

}  // namespace muster::internal
