#ifndef PS_STATE_RECORDS_H_
#define PS_STATE_RECORDS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "proto/server_log.pb.h"
#include "ps/parameter_shard.h"

namespace muster {

// Takes a record and the bytes after it, which are valid during the call.
using RecordSink = absl::FunctionRef<absl::Status(
    const proto::ServerLogRecord&,
    absl::Span<const absl::Span<const uint8_t>>)>;

// Passes the whole state to `sink`, as records from which an empty shard
// restores it by ParameterShard::Replay(). The last one is a
// ServerLogSnapshotEnd. Training may continue meanwhile.
//   errors of `sink`
absl::Status WriteState(const ParameterShard::RecordedState& state,
                        const proto::ServerLogJob& job, RecordSink sink);

}  // namespace muster

#endif  // PS_STATE_RECORDS_H_
