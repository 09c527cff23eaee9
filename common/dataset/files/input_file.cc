#include "common/dataset/files/input_file.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/confined_files.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

// Deflate encodes at most 258 bytes in two bits, which is a factor of 1032.
constexpr int64_t kCompressionMax = 1032;
constexpr unsigned kBufferBytes = 1 << 17;
constexpr size_t kReadBytesMax = size_t{1} << 30;  // zlib uses int.

absl::Status OpenError(const std::string& path, int error) {
  const std::string message =
      absl::StrCat(path, ": cannot be opened: ", std::strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(message);
    case EACCES:
      return absl::PermissionDeniedError(message);
    default:
      return absl::UnavailableError(message);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<InputFile>> InputFile::Open(
    absl::string_view path) {
  std::string name(path);
  ASSIGN_OR_RETURN(const int descriptor, OpenToRead(name));
  if (descriptor < 0) return OpenError(name, errno);
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor);
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": is not a regular file"));
  }
  const gzFile file = gzdopen(descriptor, "rb");
  if (file == nullptr) {
    close(descriptor);
    return OpenError(name, ENOMEM);
  }
  gzbuffer(file, kBufferBytes);
  return std::unique_ptr<InputFile>(
      new InputFile(std::move(name), file, status.st_size));
}

InputFile::~InputFile() { gzclose(static_cast<gzFile>(file_)); }

int64_t InputFile::content_bytes_max() const {
  if (gzdirect(static_cast<gzFile>(file_)) != 0) return size_bytes_;
  int64_t bytes;
  return __builtin_mul_overflow(size_bytes_, kCompressionMax, &bytes)
             ? INT64_MAX
             : bytes;
}

absl::StatusOr<size_t> InputFile::Read(void* data, size_t size_bytes) {
  size_t read_bytes = 0;
  while (read_bytes < size_bytes) {
    const size_t wanted = std::min(size_bytes - read_bytes, kReadBytesMax);
    const int count = gzread(static_cast<gzFile>(file_),
                             static_cast<char*>(data) + read_bytes,
                             static_cast<unsigned>(wanted));
    int error = Z_OK;
    const char* const message = gzerror(static_cast<gzFile>(file_), &error);
    // A truncated compressed file ends in Z_BUF_ERROR.
    if (count < 0 || (error != Z_OK && error != Z_STREAM_END)) {
      return absl::DataLossError(
          absl::StrCat(path_, ": cannot be read: ",
                       error == Z_ERRNO ? std::strerror(errno) : message));
    }
    if (count == 0) break;
    read_bytes += static_cast<size_t>(count);
  }
  return read_bytes;
}

}  // namespace muster
