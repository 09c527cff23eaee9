#ifndef COMMON_IO_RECORDS_BYTE_SOURCE_H_
#define COMMON_IO_RECORDS_BYTE_SOURCE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// Where a stream of bytes comes from. Not thread-safe. Errors name it; after
// one it is not asked again.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // What errors call it: the path of a file.
  virtual const std::string& name() const = 0;

  // Reads until `size_bytes` are there or the content ends, and returns how
  // many came.
  virtual absl::StatusOr<size_t> Read(void* data, size_t size_bytes) = 0;
};

// A regular file, read in pieces of 256 KiB.
//   kNotFound, kPermissionDenied, others  as absl::ErrnoToStatus()
//   kInvalidArgument  not a regular file
// Of the source: as absl::ErrnoToStatus()
absl::StatusOr<std::unique_ptr<ByteSource>> OpenFileSource(
    absl::string_view path);

// `content` outlives the source.
std::unique_ptr<ByteSource> CreateStringSource(absl::string_view name,
                                               absl::string_view content);

// The content of a zlib stream or of gzip members one after another, whichever
// `source` holds.
//   kDataLoss  the compressed data is damaged, or ends too early; says at which
//              byte of `source`
std::unique_ptr<ByteSource> CreateInflateSource(
    std::unique_ptr<ByteSource> source);

}  // namespace muster

#endif  // COMMON_IO_RECORDS_BYTE_SOURCE_H_
