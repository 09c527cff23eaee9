#ifndef COMMON_DATASET_FILES_INPUT_FILE_H_
#define COMMON_DATASET_FILES_INPUT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/io/records/byte_source.h"

namespace muster {

// Reads a regular file, or the URL of an object, sequentially and decompresses
// gzip. Errors name the file. Not thread-safe.
class InputFile {
 public:
  //   kNotFound         no such file
  //   kInvalidArgument  not a regular file
  //   kPermissionDenied, others  as OpenInput()
  static absl::StatusOr<std::unique_ptr<InputFile>> Open(
      absl::string_view path);

  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return source_->name(); }

  // An upper bound of the bytes that Read() can return: the size of a plain
  // file, and for a compressed file the most that its size can contain.
  int64_t content_bytes_max() const { return content_bytes_max_; }

  // Reads until `size_bytes` bytes are read or the file ends. Returns the
  // number of bytes read.
  //   kDataLoss  its compressed data is damaged
  //   others     as ReadableFile::ReadAt()
  absl::StatusOr<size_t> Read(void* data, size_t size_bytes) {
    return source_->Read(data, size_bytes);
  }

 private:
  InputFile(std::unique_ptr<ByteSource> source, int64_t content_bytes_max)
      : source_(std::move(source)), content_bytes_max_(content_bytes_max) {}

  const std::unique_ptr<ByteSource> source_;
  const int64_t content_bytes_max_;
};

// Returns kInvalidArgument with "<path of the file>: <message>".
absl::Status FileError(const InputFile& file, absl::string_view message);

}  // namespace muster

#endif  // COMMON_DATASET_FILES_INPUT_FILE_H_
