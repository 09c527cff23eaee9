#ifndef COMMON_NET_PROCESS_STATUS_SERVICE_H_
#define COMMON_NET_PROCESS_STATUS_SERVICE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/net/cluster/cluster_config.h"
#include "common/net/process/task_options.h"
#include "common/net/rpc/identity.h"
#include "common/net/status/http_server.h"

namespace muster {

// The content of the first line that a process logs. It identifies the process
// for readers of the log.
struct StartInfo {
  ClusterConfig config;
  std::string address;  // Where the process listens; empty if it does not.
  uint64_t incarnation = 0;
  std::optional<uint64_t> seed;
  std::string resumes_from;  // A checkpoint; empty for a fresh start.
};

// Returns "muster 0.1.0  worker 1 of 2  localhost:20001  incarnation
// 6f1c02a9d2e4b713  seed 7", in one line.
std::string StartLine(const StartInfo& info);

// Serves the status pages of this process on the address that the flags name,
// and logs their URL. Returns null if --status_port is not set.
//   kInvalidArgument  the address is invalid, or the token file cannot be read
//                     or has fewer than 16 characters; exit code kUsage
//   kUnavailable      the address is in use or not this machine's
absl::StatusOr<std::unique_ptr<HttpServer>> ServeStatusPages(
    const TaskOptions& options, const TaskIdentity& identity);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_STATUS_SERVICE_H_
