#ifndef COMMON_IO_RECORDS_BYTE_SOURCE_H_
#define COMMON_IO_RECORDS_BYTE_SOURCE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/io/storage/disk.h"

namespace muster {

// The source of a stream of bytes. Not thread-safe. Errors contain its name.
// Must not be used after an error.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // The name in error messages: the path of a file.
  virtual const std::string& name() const = 0;

  // Reads until `size_bytes` bytes are read or the content ends. Returns the
  // number of bytes read.
  virtual absl::StatusOr<size_t> Read(void* data, size_t size_bytes) = 0;
};

// Opens a regular file or the URL of an object, which is read in blocks of 256
// KiB, as OpenInput() does.
//   kNotFound, kPermissionDenied, others  as absl::ErrnoToStatus()
//   kInvalidArgument  not a regular file
// Errors of the source: as absl::ErrnoToStatus()
absl::StatusOr<std::unique_ptr<ByteSource>> OpenFileSource(
    absl::string_view path);

// Reads the whole of `file`. `name` is for error messages.
std::unique_ptr<ByteSource> CreateFileSource(
    absl::string_view name, std::unique_ptr<ReadableFile> file);

// `content` outlives the source.
std::unique_ptr<ByteSource> CreateStringSource(absl::string_view name,
                                               absl::string_view content);

// Decompresses a zlib stream or a sequence of gzip members, whichever `source`
// contains.
//   kDataLoss  the compressed data is damaged or truncated; gives the offset in
//              `source`
std::unique_ptr<ByteSource> CreateInflateSource(
    std::unique_ptr<ByteSource> source);

}  // namespace muster

#endif  // COMMON_IO_RECORDS_BYTE_SOURCE_H_
