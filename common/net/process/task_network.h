#ifndef COMMON_NET_PROCESS_TASK_NETWORK_H_
#define COMMON_NET_PROCESS_TASK_NETWORK_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/net/process/task_options.h"
#include "common/net/rpc/network.h"

namespace muster {

// Checks that a task which other machines can reach, or which reaches them, has
// TLS or has been told to do without (--insecure).
//   kInvalidArgument  it has neither; the message names the address and the
//                     ways out
absl::Status CheckTransportIsProtected(const TaskOptions& options);

// Returns the network that `options` ask for: over TLS with a certificate, or
// in plaintext. Lives as long as the process. Called once.
//   kInvalidArgument, kNotFound  as TlsContext::Load(), or the certificate is
//                                that of another task; with exit code kUsage
absl::StatusOr<Network*> MakeTaskNetwork(const TaskOptions& options);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_TASK_NETWORK_H_
