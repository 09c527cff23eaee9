#include "coordinator/kept_result.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/core/base/status_macros.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/message.h"
#include "proto/worker.pb.h"
#include "worker/client/worker_protocol.h"

namespace muster {
namespace {

// Interval in which a fetch checks whether its worker is lost.
constexpr absl::Duration kPollInterval = absl::Milliseconds(100);

struct Answer {
  absl::Mutex mutex;
  bool is_received ABSL_GUARDED_BY(mutex) = false;
  // Set once, before `is_received` becomes true.
  absl::StatusOr<ReceivedMessage> message;
};

bool AwaitResponse(Answer& answer, absl::Time deadline, Clock* clock) {
  absl::MutexLock lock(&answer.mutex);
  return clock->AwaitWithDeadline(
      &answer.mutex, absl::Condition(&answer.is_received), deadline);
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> FetchKeptResult(
    const RemoteValueState::Keeper& keeper, uint64_t closure_id,
    absl::Time deadline, absl::FunctionRef<bool()> is_session_open,
    Channel* channel, Clock* clock) {
  // Shared, because the call may outlive this function.
  const auto answer = std::make_shared<Answer>();
  if (is_session_open()) {
    proto::FetchResultRequest request;
    request.set_closure_id(closure_id);
    const absl::Duration left =
        std::max(deadline - clock->Now(), absl::Milliseconds(1));
    channel->StartCall(kWorkerFetchResultMethod,
                       Message{request.SerializeAsString(), {}},
                       {.timeout = std::min(left, absl::Hours(1))},
                       [answer](absl::StatusOr<ReceivedMessage> message) {
                         absl::MutexLock lock(&answer->mutex);
                         answer->message = std::move(message);
                         answer->is_received = true;
                       });
    // A suspended worker does not respond; its session ends after a timeout.
    while (!AwaitResponse(*answer, clock->Now() + kPollInterval, clock) &&
           is_session_open()) {
    }
  }
  if (!AwaitResponse(*answer, absl::InfinitePast(), clock)) {
    return absl::UnavailableError(absl::StrCat(
        "the result of closure ", closure_id, " is lost: ", channel->peer(),
        ", incarnation ", IncarnationString(keeper.worker_incarnation),
        ", kept it, and has ended or was disconnected"));
  }
  RETURN_IF_ERROR(answer->message.status());
  return answer->message->ToTensors();
}

}  // namespace muster
