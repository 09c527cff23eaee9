#ifndef DEPLOY_MUSTERCTL_STANDARD_STREAMS_H_
#define DEPLOY_MUSTERCTL_STANDARD_STREAMS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace muster {

// Writes all bytes to standard output, without a buffer.
//   as absl::ErrnoToStatus() for the error of the system
absl::Status WriteToStandardOutput(absl::Span<const uint8_t> bytes);

// Waits for bytes of standard input, and fills a part of the span from its
// start. Returns how many bytes; 0 at the end.
//   as absl::ErrnoToStatus() for the error of the system
absl::StatusOr<size_t> ReadFromStandardInput(absl::Span<uint8_t> bytes);

}  // namespace muster

#endif  // DEPLOY_MUSTERCTL_STANDARD_STREAMS_H_
