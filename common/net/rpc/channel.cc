#include "common/net/rpc/channel.h"

#include <utility>

#include "absl/synchronization/notification.h"

namespace muster {

absl::StatusOr<ReceivedMessage> Channel::CallAndWait(
    absl::string_view method, const Message& request,
    const CallOptions& options) {
  absl::StatusOr<ReceivedMessage> result =
      absl::InternalError("the call was dropped");
  absl::Notification done;
  StartCall(method, request, options,
            [&](absl::StatusOr<ReceivedMessage> response) {
              result = std::move(response);
              done.Notify();
            });
  // This wait has no timeout: the call has one, and names its peer if it
  // expires.
  done.WaitForNotification();
  return result;
}

}  // namespace muster
