#ifndef COORDINATOR_KEPT_RESULT_H_
#define COORDINATOR_KEPT_RESULT_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/tensor.h"
#include "common/net/rpc/channel.h"
#include "coordinator/remote_value.h"

namespace muster {

// Fetches the results of a closure from the worker that keeps them, over
// `channel`. The results are lost with the session of that worker.
// `is_session_open` returns whether the session is still open; it is called
// repeatedly until the response is received.
//   kDeadlineExceeded  no response in time
//   kUnavailable       the session has ended, or the worker cannot be reached
//   any                an error that the worker returned
absl::StatusOr<std::vector<Tensor>> FetchKeptResult(
    const RemoteValueState::Keeper& keeper, uint64_t closure_id,
    absl::Time deadline, absl::FunctionRef<bool()> is_session_open,
    Channel* channel, Clock* clock);

}  // namespace muster

#endif  // COORDINATOR_KEPT_RESULT_H_
