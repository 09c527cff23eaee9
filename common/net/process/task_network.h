#ifndef COMMON_NET_PROCESS_TASK_NETWORK_H_
#define COMMON_NET_PROCESS_TASK_NETWORK_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/net/process/task_options.h"
#include "common/net/rpc/network.h"

namespace muster {

// Checks that a task which communicates with other machines uses TLS, or has
// the flag --insecure.
//   kInvalidArgument  it has neither; the message names the address and the
//                     ways to fix it
absl::Status CheckTransportIsProtected(const TaskOptions& options);

// Returns the network that `options` select: over TLS if they name a
// certificate, otherwise in plaintext. The network lives as long as the
// process. Call it once.
//   kInvalidArgument, kNotFound  as TlsContext::Load(), or the certificate
//                                belongs to another task; with exit code kUsage
absl::StatusOr<Network*> MakeTaskNetwork(const TaskOptions& options);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_TASK_NETWORK_H_
