#include "common/io/records/byte_source.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/confined_files.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

constexpr size_t kBufferBytes = size_t{256} << 10;

class FileSource final : public ByteSource {
 public:
  FileSource(std::string path, int descriptor)
      : path_(std::move(path)),
        descriptor_(descriptor),
        buffer_(kBufferBytes) {}
  ~FileSource() override { close(descriptor_); }

  const std::string& name() const override { return path_; }

  absl::StatusOr<size_t> Read(void* data, size_t size_bytes) override {
    char* const target = static_cast<char*>(data);
    size_t count = 0;
    while (count < size_bytes) {
      if (next_ == end_) {
        const ssize_t came = read(descriptor_, buffer_.data(), buffer_.size());
        if (came < 0 && errno == EINTR) continue;
        if (came < 0) {
          return absl::ErrnoToStatus(errno,
                                     absl::StrCat("cannot read ", path_));
        }
        if (came == 0) break;
        next_ = 0;
        end_ = static_cast<size_t>(came);
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
  const int descriptor_;
  std::vector<char> buffer_;
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
  ASSIGN_OR_RETURN(const int descriptor, OpenToRead(name));
  if (descriptor < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", name));
  }
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor);
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": is not a regular file"));
  }
  return std::make_unique<FileSource>(std::move(name), descriptor);
}

std::unique_ptr<ByteSource> CreateStringSource(absl::string_view name,
                                               absl::string_view content) {
  return std::make_unique<StringSource>(name, content);
}

}  // namespace muster
