#ifndef COMMON_IO_RECORDS_BYTE_SINK_H_
#define COMMON_IO_RECORDS_BYTE_SINK_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// Where a stream of bytes goes. Not thread-safe. After an error the content is
// cut off at an unknown place, and every later call returns that error.
class ByteSink {
 public:
  // Closes it, and drops an error in doing so.
  virtual ~ByteSink() = default;

  virtual absl::Status Append(absl::string_view bytes) = 0;

  // Everything appended can be seen by readers when this returns OK.
  virtual absl::Status Flush() = 0;

  // As Flush(), and nothing may follow. A second call does nothing.
  virtual absl::Status Close() = 0;
};

// A new file, emptied where there is one, behind a buffer of 64 KiB. Flush()
// hands the buffer to the system; nothing is synced to the device.
//   kNotFound           a folder of the path is missing
//   kPermissionDenied, others  as absl::ErrnoToStatus()
// Of the sink:
//   kResourceExhausted  no space, or no quota, is left
absl::StatusOr<std::unique_ptr<ByteSink>> CreateFileSink(
    absl::string_view path);

// Into `*content`, which outlives the sink.
std::unique_ptr<ByteSink> CreateStringSink(std::string* content);

}  // namespace muster

#endif  // COMMON_IO_RECORDS_BYTE_SINK_H_
