#ifndef COMMON_NET_COLLECTIVES_SHM_SHARED_SEGMENT_H_
#define COMMON_NET_COLLECTIVES_SHM_SHARED_SEGMENT_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "common/core/system/file_descriptor.h"

namespace muster::internal {

// Memory mapped into this process. The destructor unmaps it.
class MappedMemory {
 public:
  // Allocates zeroed memory that only this process can access.
  //   kResourceExhausted  not enough memory
  static absl::StatusOr<MappedMemory> Private(size_t size_bytes);

  // Maps `size_bytes` of a segment that another process has made with
  // CreateSegment().
  //   kInvalidArgument    the file is smaller, or can shrink
  //   kResourceExhausted  no memory or address space is available
  static absl::StatusOr<MappedMemory> Shared(const FileDescriptor& segment,
                                             size_t size_bytes);

  MappedMemory() = default;
  MappedMemory(MappedMemory&& other) noexcept;
  MappedMemory& operator=(MappedMemory&& other) noexcept;
  ~MappedMemory();

  uint8_t* data() const { return data_; }
  size_t size_bytes() const { return size_bytes_; }

 private:
  MappedMemory(uint8_t* data, size_t size_bytes)
      : data_(data), size_bytes_(size_bytes) {}

  uint8_t* data_ = nullptr;
  size_t size_bytes_ = 0;
};

// Creates a zeroed, unnamed memory file whose size never changes. It is freed
// when no process has it open or mapped any more.
//   kResourceExhausted  no memory or file descriptor is available
absl::StatusOr<FileDescriptor> CreateSegment(size_t size_bytes);

}  // namespace muster::internal

#endif  // COMMON_NET_COLLECTIVES_SHM_SHARED_SEGMENT_H_
