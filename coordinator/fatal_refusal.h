#ifndef COORDINATOR_FATAL_REFUSAL_H_
#define COORDINATOR_FATAL_REFUSAL_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/net/rpc/reconnecting_stream.h"

namespace muster {

// Returns the error with which start-up must end after a peer, expected to be a
// `role` ("worker"), has refused its first session with `why`. Returns OK if a
// later attempt may succeed.
//   kFailedPrecondition  the cluster configurations of the tasks differ (`why`
//                        has `disagreement_code`), or the peer has another role
//   as ReplacedByNewerCoordinator()
absl::Status FatalRefusal(const ReconnectingStream& stream,
                          absl::string_view role,
                          absl::StatusCode disagreement_code,
                          const absl::Status& why);

// Returns the error of a coordinator whose tasks serve another coordinator;
// `who` names one. The exit code asks for a restart: a cluster manager may have
// started this coordinator while the previous one still saves before it ends.
absl::Status ServesAnotherCoordinator(absl::string_view who);

// Returns the error of a coordinator after the refusal `why`, for which
// IsOfEarlierCoordinator() is true: kAborted. The exit code asks for no
// restart: the newer coordinator continues the job.
absl::Status ReplacedByNewerCoordinator(const absl::Status& why);

}  // namespace muster

#endif  // COORDINATOR_FATAL_REFUSAL_H_
