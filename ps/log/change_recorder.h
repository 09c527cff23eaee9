#ifndef PS_LOG_CHANGE_RECORDER_H_
#define PS_LOG_CHANGE_RECORDER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "proto/server_log.pb.h"

namespace muster {

// Receives every change of a server's state, in order, before it is made: a log
// on disk, or a process that holds a copy.
//
// Thread-safe.
class ChangeRecorder {
 public:
  virtual ~ChangeRecorder() = default;

  // False if a record would be ignored, so that callers need not make it.
  virtual bool is_recording() const = 0;

  // Records a change, whose tensors are the bytes of `pieces`, one after
  // another. The bytes are not used after the call. Callers order their calls.
  //   any  the change must not be made
  virtual absl::Status Append(
      proto::ServerLogRecord record,
      absl::Span<const absl::Span<const uint8_t>> pieces = {}) = 0;

  // Something that cannot be repeated from a record is about to change the
  // state. What was recorded is of no use until the whole state is recorded
  // again.
  virtual void RequestSnapshot() = 0;

  // The state was cleared. `state_id` identifies the new, empty state.
  virtual absl::Status BeginEmpty(uint64_t state_id) = 0;
};

}  // namespace muster

#endif  // PS_LOG_CHANGE_RECORDER_H_
