// What ClosureDispatcher does for who wants the results of a closure.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/core/base/status_macros.h"
#include "common/net/rpc/identity.h"
#include "coordinator/closure_dispatcher.h"
#include "worker/client/worker_protocol.h"

namespace muster {
namespace {

// How soon a fetch notices that its worker is lost.
constexpr absl::Duration kFetchPollInterval = absl::Milliseconds(100);

}  // namespace

absl::StatusOr<std::vector<Tensor>> ClosureDispatcher::Fetch(
    const RemoteValue& value, absl::Time deadline) {
  if (!value.valid()) {
    return absl::InvalidArgumentError("this RemoteValue is of no closure");
  }
  const absl::Time started = clock_->Now();
  RemoteValueState* const state = value.state().get();
  if (!state->AwaitDone(deadline)) {
    absl::MutexLock lock(&mutex_);
    return TimedOut(absl::StrCat("Fetch of closure ", value.closure_id()),
                    clock_->Now() - started);
  }
  RETURN_IF_ERROR(state->status());
  const auto keeper = state->keeper();
  if (!keeper.has_value()) return state->results();
  ASSIGN_OR_RETURN(std::vector<Tensor> results,
                   FetchFrom(*keeper, value.closure_id(), deadline));
  state->SetFetched(results);
  return results;
}

absl::StatusOr<std::vector<Tensor>> ClosureDispatcher::FetchFrom(
    const RemoteValueState::Keeper& keeper, uint64_t closure_id,
    absl::Time deadline) {
  struct Answer {
    absl::Notification came;
    absl::StatusOr<ReceivedMessage> message;
  };
  // The call may outlive the wait.
  const auto answer = std::make_shared<Answer>();
  Channel& channel = *lanes_[keeper.worker_index].channel;
  if (IsOpen(keeper)) {
    proto::FetchResultRequest request;
    request.set_closure_id(closure_id);
    const absl::Duration left =
        std::max(deadline - clock_->Now(), absl::Milliseconds(1));
    channel.StartCall(kWorkerFetchResultMethod,
                      Message{request.SerializeAsString(), {}},
                      {.timeout = std::min(left, absl::Hours(1))},
                      [answer](absl::StatusOr<ReceivedMessage> message) {
                        answer->message = std::move(message);
                        answer->came.Notify();
                      });
    // A worker that is stopped does not answer; its conversation ends.
    while (!answer->came.WaitForNotificationWithTimeout(kFetchPollInterval) &&
           IsOpen(keeper)) {
    }
  }
  if (!answer->came.HasBeenNotified()) {
    return absl::UnavailableError(absl::StrCat(
        "the result of closure ", closure_id, " is lost: ", channel.peer(),
        ", incarnation ", IncarnationString(keeper.worker_incarnation),
        ", kept it and is no more, or was lost for a time"));
  }
  RETURN_IF_ERROR(answer->message.status());
  return answer->message->ToTensors();
}

bool ClosureDispatcher::IsOpen(const RemoteValueState::Keeper& keeper) const {
  absl::MutexLock lock(&mutex_);
  return lanes_[keeper.worker_index].session == keeper.session && !stopping_;
}

}  // namespace muster
