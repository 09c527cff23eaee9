#ifndef COORDINATOR_PEER_REASON_H_
#define COORDINATOR_PEER_REASON_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/net/rpc/channel.h"

namespace muster {

// Returns the message of `status` without the peer's name as prefix, for
// messages that name the peer themselves.
inline std::string PeerReason(const Channel& channel,
                              const absl::Status& status) {
  absl::string_view reason = status.message();
  absl::ConsumePrefix(&reason, absl::StrCat(channel.peer(), ": "));
  return std::string(reason);
}

}  // namespace muster

#endif  // COORDINATOR_PEER_REASON_H_
