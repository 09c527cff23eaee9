#include "common/io/records/byte_source.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/io/storage/disk.h"
#include "common/io/storage/open_input.h"

namespace muster {
namespace {

constexpr size_t kFileSourceBufferBytes = size_t{256} << 10;

class FileSource final : public ByteSource {
 public:
  FileSource(absl::string_view path, std::unique_ptr<ReadableFile> file)
      : path_(path), file_(std::move(file)), buffer_(kFileSourceBufferBytes) {}

  const std::string& name() const override { return path_; }

  absl::StatusOr<size_t> Read(void* data, size_t size_bytes) override {
    char* const target = static_cast<char*>(data);
    size_t count = 0;
    while (count < size_bytes) {
      if (next_ == end_) {
        next_ = 0;
        end_ = static_cast<size_t>(std::min<int64_t>(
            kFileSourceBufferBytes, file_->size_bytes() - offset_));
        if (end_ == 0) break;
        RETURN_IF_ERROR(
            file_->ReadAt(offset_, absl::MakeSpan(buffer_.data(), end_)));
        offset_ += static_cast<int64_t>(end_);
      }
      const size_t part = std::min(size_bytes - count, end_ - next_);
      std::memcpy(target + count, buffer_.data() + next_, part);
      next_ += part;
      count += part;
    }
    return count;
  }

 private:
  const std::string path_;
  const std::unique_ptr<ReadableFile> file_;
  int64_t offset_ = 0;  // File offset of the end of the buffer.
  std::vector<uint8_t> buffer_;
  size_t next_ = 0;
  size_t end_ = 0;
};

class StringSource final : public ByteSource {
 public:
  StringSource(absl::string_view name, absl::string_view content)
      : name_(name), content_(content) {}

  const std::string& name() const override { return name_; }

  absl::StatusOr<size_t> Read(void* data, size_t size_bytes) override {
    const size_t part = std::min(size_bytes, content_.size());
    std::copy_n(content_.data(), part, static_cast<char*>(data));
    content_.remove_prefix(part);
    return part;
  }

 private:
  const std::string name_;
  absl::string_view content_;  // The part not yet read.
};

}  // namespace

absl::StatusOr<std::unique_ptr<ByteSource>> OpenFileSource(
    absl::string_view path) {
  std::string name(path);
  ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, OpenInput(name));
  return CreateFileSource(name, std::move(file));
}

std::unique_ptr<ByteSource> CreateFileSource(
    absl::string_view name, std::unique_ptr<ReadableFile> file) {
  return std::make_unique<FileSource>(name, std::move(file));
}

std::unique_ptr<ByteSource> CreateStringSource(absl::string_view name,
                                               absl::string_view content) {
  return std::make_unique<StringSource>(name, content);
}

}  // namespace muster
