#ifndef PS_CLIENT_CLIENT_SEGMENT_H_
#define PS_CLIENT_CLIENT_SEGMENT_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "common/core/system/file_descriptor.h"
#include "common/core/tensor/buffer.h"

namespace muster {

// Memory that a client shares with the parameter servers of its host: a file
// without a name, which goes when the last process that has it open or mapped
// goes, however they end. Its size is fixed for good, so that a process that
// has mapped it can touch all of it; pages are taken as they are needed, not
// before.
class ClientSegment {
 public:
  //   kResourceExhausted  no more memory or files
  static absl::StatusOr<std::unique_ptr<ClientSegment>> Create(
      size_t size_bytes);

  ClientSegment(const ClientSegment&) = delete;
  ClientSegment& operator=(const ClientSegment&) = delete;

  // Zeroed at first. May outlive the segment.
  const std::shared_ptr<Buffer>& memory() const { return memory_; }
  const FileDescriptor& file() const { return file_; }

  // Takes the pages of a part for this process, so that no access can fail for
  // want of them later. False when there are none.
  bool TakePages(size_t offset, size_t size_bytes);

 private:
  ClientSegment(FileDescriptor file, std::shared_ptr<Buffer> memory)
      : file_(std::move(file)), memory_(std::move(memory)) {}

  const FileDescriptor file_;
  const std::shared_ptr<Buffer> memory_;
};

// Maps a segment that came from a client, as a whole, with the contents that it
// has.
//   kInvalidArgument    the file could be made smaller, is no memory, or is
//                       larger than `size_bytes_max`
//   kResourceExhausted  no room
absl::StatusOr<std::shared_ptr<Buffer>> MapClientSegment(
    const FileDescriptor& file, size_t size_bytes_max);

}  // namespace muster

#endif  // PS_CLIENT_CLIENT_SEGMENT_H_
