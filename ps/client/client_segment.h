#ifndef PS_CLIENT_CLIENT_SEGMENT_H_
#define PS_CLIENT_CLIENT_SEGMENT_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "common/core/system/file_descriptor.h"
#include "common/core/tensor/buffer.h"

namespace muster {

// Memory that a client shares with the parameter servers of its host: an
// anonymous file. The kernel frees it when the last process that has it open or
// mapped ends, even after a crash. Its size never changes, so a process that
// has mapped it can access all of it. Pages are allocated when they are first
// used.
class ClientSegment {
 public:
  //   kResourceExhausted  no memory or no file descriptor is available
  static absl::StatusOr<std::unique_ptr<ClientSegment>> Create(
      size_t size_bytes);

  ClientSegment(const ClientSegment&) = delete;
  ClientSegment& operator=(const ClientSegment&) = delete;

  // Contains zeros at first. May outlive the segment.
  const std::shared_ptr<Buffer>& memory() const { return memory_; }
  const FileDescriptor& file() const { return file_; }

  // Allocates the pages of a part of the segment, so that no later access fails
  // for lack of memory. Returns false if no pages are available.
  bool TakePages(size_t offset, size_t size_bytes);

 private:
  ClientSegment(FileDescriptor file, std::shared_ptr<Buffer> memory)
      : file_(std::move(file)), memory_(std::move(memory)) {}

  const FileDescriptor file_;
  const std::shared_ptr<Buffer> memory_;
};

// Maps the whole segment of a client, with its current contents.
//   kInvalidArgument    the file can shrink, is not in memory, or is larger
//                       than `size_bytes_max`
//   kResourceExhausted  no memory or address space is available
absl::StatusOr<std::shared_ptr<Buffer>> MapClientSegment(
    const FileDescriptor& file, size_t size_bytes_max);

}  // namespace muster

#endif  // PS_CLIENT_CLIENT_SEGMENT_H_
