#ifndef COMMON_CORE_TENSOR_BUFFER_H_
#define COMMON_CORE_TENSOR_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "common/core/tensor/place.h"

namespace muster {

// A block of memory with one lifetime, shared by the tensors that refer to it.
//
// Vector code needs aligned loads, and gRPC and shared memory pass memory on
// without a copy. A buffer is therefore either allocated here, aligned to
// kAlignmentBytes, or wraps memory that another owner releases.
class Buffer {
 public:
  static constexpr size_t kAlignmentBytes = 64;

  // Allocates uninitialized memory, page-aligned from 4 MiB on. Terminates the
  // process if the machine is out of memory, as operator new does; callers
  // check sizes that come from outside against a limit first.
  static std::shared_ptr<Buffer> Allocate(size_t size_bytes);

  // Wraps memory of another owner. `release` runs when the last reference is
  // dropped. `place` is the place of the memory; `data` is its address there.
  static std::shared_ptr<Buffer> Wrap(void* data, size_t size_bytes,
                                      std::function<void()> release,
                                      Place place = {});

  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // The address at place(). Only device work may use the address of device
  // memory.
  uint8_t* data() const { return data_; }
  size_t size_bytes() const { return size_bytes_; }
  Place place() const { return place_; }

 private:
  Buffer(uint8_t* data, size_t size_bytes, std::function<void()> release,
         Place place)
      : data_(data),
        size_bytes_(size_bytes),
        place_(place),
        release_(std::move(release)) {}

  uint8_t* const data_;
  const size_t size_bytes_;
  const Place place_;
  const std::function<void()> release_;  // Null when allocated here.
};

}  // namespace muster

#endif  // COMMON_CORE_TENSOR_BUFFER_H_
