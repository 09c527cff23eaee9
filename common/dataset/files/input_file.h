#ifndef COMMON_DATASET_FILES_INPUT_FILE_H_
#define COMMON_DATASET_FILES_INPUT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// Reads a regular file sequentially and decompresses gzip. Errors name the
// file. Not thread-safe.
class InputFile {
 public:
  //   kNotFound         no such file
  //   kInvalidArgument  not a regular file
  //   kPermissionDenied, kUnavailable  it cannot be opened
  static absl::StatusOr<std::unique_ptr<InputFile>> Open(
      absl::string_view path);

  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }

  // An upper bound of the bytes that Read() can return: the size of a plain
  // file, and for a compressed file the most that its size can contain.
  int64_t content_bytes_max() const;

  // Reads until `size_bytes` bytes are read or the file ends. Returns the
  // number of bytes read.
  //   kDataLoss  it cannot be read, or its compressed data is damaged
  absl::StatusOr<size_t> Read(void* data, size_t size_bytes);

 private:
  InputFile(std::string path, void* file, int64_t size_bytes)
      : path_(std::move(path)), file_(file), size_bytes_(size_bytes) {}

  const std::string path_;
  void* const file_;  // A gzFile.
  const int64_t size_bytes_;
};

}  // namespace muster

#endif  // COMMON_DATASET_FILES_INPUT_FILE_H_
