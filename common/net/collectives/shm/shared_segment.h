#ifndef COMMON_NET_COLLECTIVES_SHM_SHARED_SEGMENT_H_
#define COMMON_NET_COLLECTIVES_SHM_SHARED_SEGMENT_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "common/core/system/file_descriptor.h"

namespace muster::internal {

// Memory mapped into this process; unmapped by the destructor.
class MappedMemory {
 public:
  // Zeroed memory of this process alone.
  //   kResourceExhausted  there is not so much
  static absl::StatusOr<MappedMemory> Private(size_t size_bytes);

  // `size_bytes` of a segment that another process has made with CreateSegment.
  //   kInvalidArgument    the file is smaller, or may still shrink
  //   kResourceExhausted  no room
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

// A memory file without a name, zeroed, which never changes its size. It goes
// when the last process that has it open or mapped goes.
//   kResourceExhausted  no more memory or files
absl::StatusOr<FileDescriptor> CreateSegment(size_t size_bytes);

}  // namespace muster::internal

#endif  // COMMON_NET_COLLECTIVES_SHM_SHARED_SEGMENT_H_
