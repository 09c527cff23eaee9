#ifndef COMMON_NET_PROCESS_STATUS_SERVICE_H_
#define COMMON_NET_PROCESS_STATUS_SERVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/net/process/task_options.h"
#include "common/net/rpc/identity.h"
#include "common/net/status/http_server.h"

namespace muster {

// Serves the status pages of this process on the address that the flags name,
// and logs their URL. Returns null if --status_port is not set.
//   kInvalidArgument  the address is invalid, or the token file cannot be read
//                     or has fewer than 16 characters; exit code kUsage
//   kUnavailable      the address is in use or not this machine's
absl::StatusOr<std::unique_ptr<HttpServer>> ServeStatusPages(
    const TaskOptions& options, const TaskIdentity& identity);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_STATUS_SERVICE_H_
