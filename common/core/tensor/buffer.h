#ifndef COMMON_CORE_TENSOR_BUFFER_H_
#define COMMON_CORE_TENSOR_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace muster {

// A block of memory with one lifetime, shared by the tensors that look into it.
//
// Vectors want aligned loads, and gRPC and shared-memory lanes want to hand
// memory over without a copy, so a buffer is either allocated here, aligned to
// kAlignmentBytes, or wraps memory that somebody else gives back.
class Buffer {
 public:
  static constexpr size_t kAlignmentBytes = 64;

  // Uninitialized memory; from 4 MiB on it begins at a page. Dies when the
  // machine has no memory left, as operator new does; sizes that came from
  // outside are checked against a limit first.
  static std::shared_ptr<Buffer> Allocate(size_t size_bytes);

  // Memory of another owner; `release` runs when the last user lets go.
  static std::shared_ptr<Buffer> Wrap(void* data, size_t size_bytes,
                                      std::function<void()> release);

  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  uint8_t* data() const { return data_; }
  size_t size_bytes() const { return size_bytes_; }

 private:
  Buffer(uint8_t* data, size_t size_bytes, std::function<void()> release)
      : data_(data), size_bytes_(size_bytes), release_(std::move(release)) {}

  uint8_t* const data_;
  const size_t size_bytes_;
  const std::function<void()> release_;  // Null when allocated here.
};

}  // namespace muster

#endif  // COMMON_CORE_TENSOR_BUFFER_H_
