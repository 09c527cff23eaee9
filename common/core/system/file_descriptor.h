#ifndef COMMON_CORE_SYSTEM_FILE_DESCRIPTOR_H_
#define COMMON_CORE_SYSTEM_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace muster {

// Owns an open file and closes it. -1 stands for no file.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

  // Transfers the file to the caller, which closes it.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_FILE_DESCRIPTOR_H_
