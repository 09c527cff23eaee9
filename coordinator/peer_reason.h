#ifndef COORDINATOR_PEER_REASON_H_
#define COORDINATOR_PEER_REASON_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/net/process/exit_code.h"
#include "common/net/rpc/channel.h"

namespace muster {

// The message of `status` without the peer's name at its front, for a message
// that names the peer itself.
inline std::string PeerReason(const Channel& channel,
                              const absl::Status& status) {
  absl::string_view reason = status.message();
  absl::ConsumePrefix(&reason, absl::StrCat(channel.peer(), ": "));
  return std::string(reason);
}

// The error that ends a start-up when the peer offers no such service as a
// `role` does: "worker". `reason` is what the peer answered.
inline absl::Status WrongRole(const Channel& channel, absl::string_view role,
                              absl::string_view reason) {
  return WithExitCode(
      absl::FailedPreconditionError(absl::StrCat(
          channel.peer(), " is no ", role, ": ", reason,
          "; its address stands under the wrong role. Give all tasks the same ",
          "\"cluster\" in TF_CONFIG")),
      ExitCode::kUsage);
}

}  // namespace muster

#endif  // COORDINATOR_PEER_REASON_H_
