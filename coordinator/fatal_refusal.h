#ifndef COORDINATOR_FATAL_REFUSAL_H_
#define COORDINATOR_FATAL_REFUSAL_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/net/rpc/reconnecting_stream.h"

namespace muster {

// The error that must end a start-up after a peer, which should be a `role`
// ("worker"), has refused its first session with `why`. OK when a later attempt
// may succeed.
//   kFailedPrecondition  the tasks disagree about the cluster: `why` has
//                        `disagreement_code`; or the peer is of another role
absl::Status FatalRefusal(const ReconnectingStream& stream,
                          absl::string_view role,
                          absl::StatusCode disagreement_code,
                          const absl::Status& why);

// The error of a coordinator that finds its tasks with another one; `who` says
// which. An engine may have started this one while the other still saves before
// it ends, and then has to start it again.
absl::Status TakenByAnother(absl::string_view who);

}  // namespace muster

#endif  // COORDINATOR_FATAL_REFUSAL_H_
