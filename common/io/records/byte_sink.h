#ifndef COMMON_IO_RECORDS_BYTE_SINK_H_
#define COMMON_IO_RECORDS_BYTE_SINK_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// The destination of a stream of bytes. Not thread-safe. After an error the
// content ends at an unknown position, and every later call returns that error.
class ByteSink {
 public:
  // Closes the sink and ignores errors.
  virtual ~ByteSink() = default;

  virtual absl::Status Append(absl::string_view bytes) = 0;

  // Readers see everything appended so far once this returns OK.
  virtual absl::Status Flush() = 0;

  // As Flush(); nothing may be appended afterwards. A second call does nothing.
  virtual absl::Status Close() = 0;
};

// Creates or truncates a file, with a buffer of 64 KiB. Flush() passes the
// buffer to the system; nothing is synced to the device.
//   kNotFound           a folder of the path is missing
//   kPermissionDenied, others  as absl::ErrnoToStatus()
// Errors of the sink:
//   kResourceExhausted  no space, or no quota, is left
absl::StatusOr<std::unique_ptr<ByteSink>> CreateFileSink(
    absl::string_view path);

// As CreateFileSink(), but appends to an existing file.
absl::StatusOr<std::unique_ptr<ByteSink>> CreateAppendingFileSink(
    absl::string_view path);

// Appends to `*content`, which outlives the sink.
std::unique_ptr<ByteSink> CreateStringSink(std::string* content);

}  // namespace muster

#endif  // COMMON_IO_RECORDS_BYTE_SINK_H_
