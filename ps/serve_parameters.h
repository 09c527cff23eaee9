#ifndef PS_SERVE_PARAMETERS_H_
#define PS_SERVE_PARAMETERS_H_

#include "absl/status/status.h"
#include "common/net/process/task_options.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/network.h"

namespace muster {

// The life of a parameter server's process, from listening to the end of its
// job. Says in its first line who it is and in its last why it ends. SIGTERM
// and SIGINT end it in an orderly way, so this is called before any thread is
// started.
//
// The status carries the exit code (ExitCodeOf()).
//   kUnavailable        the address is taken; or the coordinator is lost
//   kFailedPrecondition a coordinator came whose TF_CONFIG disagrees
//   kAborted            the job has failed, as its coordinator says
//   kCancelled          a signal came
absl::Status ServeParameters(const TaskOptions& options,
                             const TaskIdentity& identity, Network* network);

}  // namespace muster

#endif  // PS_SERVE_PARAMETERS_H_
