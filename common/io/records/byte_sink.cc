#include "common/io/records/byte_sink.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr size_t kFileSinkBufferBytes = size_t{64} << 10;

absl::Status SystemError(absl::string_view attempted, absl::string_view path,
                         int error) {
  const std::string what = absl::StrCat("cannot ", attempted, " ", path);
  if (error == EFBIG || error == EDQUOT) {
    return absl::ResourceExhaustedError(
        absl::StrCat(what, ": ", std::strerror(error)));
  }
  return absl::ErrnoToStatus(error, what);
}

class FileSink final : public ByteSink {
 public:
  FileSink(std::string path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {
    buffer_.reserve(kFileSinkBufferBytes);
  }
  ~FileSink() override { (void)Close(); }

  absl::Status Append(absl::string_view bytes) override {
    if (!status_.ok()) return status_;
    if (descriptor_ < 0) {
      return absl::FailedPreconditionError(absl::StrCat(path_, " is closed"));
    }
    if (buffer_.size() + bytes.size() > kFileSinkBufferBytes) {
      if (absl::Status status = Flush(); !status.ok()) return status;
    }
    if (bytes.size() > kFileSinkBufferBytes) return WriteOut(bytes);
    buffer_.append(bytes.data(), bytes.size());
    return absl::OkStatus();
  }

  absl::Status Flush() override {
    if (!status_.ok() || buffer_.empty()) return status_;
    const absl::Status status = WriteOut(buffer_);
    buffer_.clear();
    return status;
  }

  absl::Status Close() override {
    if (descriptor_ < 0) return status_;
    (void)Flush();
    // Some file systems report only now that they could not store the content.
    if (close(descriptor_) != 0 && status_.ok()) {
      status_ = SystemError("close", path_, errno);
    }
    descriptor_ = -1;
    return status_;
  }

 private:
  absl::Status WriteOut(absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        status_ = SystemError("write", path_, errno);
        return status_;
      }
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return absl::OkStatus();
  }

  const std::string path_;
  int descriptor_;  // Negative: closed.
  std::string buffer_;
  absl::Status status_;  // The first error.
};

class StringSink final : public ByteSink {
 public:
  explicit StringSink(std::string* content) : content_(content) {}

  absl::Status Append(absl::string_view bytes) override {
    content_->append(bytes.data(), bytes.size());
    return absl::OkStatus();
  }
  absl::Status Flush() override { return absl::OkStatus(); }
  absl::Status Close() override { return absl::OkStatus(); }

 private:
  std::string* const content_;
};

absl::StatusOr<std::unique_ptr<ByteSink>> OpenSink(absl::string_view path,
                                                   int existing_content) {
  std::string name(path);
  const int descriptor = open(
      name.c_str(), O_WRONLY | O_CREAT | existing_content | O_CLOEXEC, 0666);
  if (descriptor < 0) return SystemError("create", name, errno);
  return std::make_unique<FileSink>(std::move(name), descriptor);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ByteSink>> CreateFileSink(
    absl::string_view path) {
  return OpenSink(path, O_TRUNC);
}

absl::StatusOr<std::unique_ptr<ByteSink>> CreateAppendingFileSink(
    absl::string_view path) {
  return OpenSink(path, O_APPEND);
}

std::unique_ptr<ByteSink> CreateStringSink(std::string* content) {
  return std::make_unique<StringSink>(content);
}

}  // namespace muster
