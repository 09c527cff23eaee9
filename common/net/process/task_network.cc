#include "common/net/process/task_network.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/exit_code.h"
#include "common/net/rpc/tls_context.h"
#include "common/net/rpc/tls_network.h"

namespace muster {
namespace {

absl::StatusOr<std::unique_ptr<TlsContext>> LoadTls(
    const TaskOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<TlsContext> tls,
                   TlsContext::Load(options.tls));
  const TaskId task = options.config.task;
  const SpiffeId& self = tls->self();
  if (self.role != TaskTypeName(task.type) || self.index != task.index) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--tls_cert: ", options.tls.certificate, " is the certificate of ",
        self.TaskName(), ", and ", options.config.source, " makes this task ",
        TaskTypeName(task.type), " ", task.index));
  }
  return tls;
}

}  // namespace

absl::Status CheckTransportIsProtected(const TaskOptions& options) {
  if (options.remote_address.empty() || !options.tls.empty() ||
      options.insecure) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the cluster's ", options.remote_address,
      " is on the network, and this task has no certificate: any process that "
      "reaches "
      "its port could give it work. Give every task --tls_cert, --tls_key and "
      "--tls_ca (`musterctl gen-certs` makes the files), keep the cluster on "
      "localhost, or add --insecure if only trusted machines can reach it"));
}

absl::StatusOr<Network*> MakeTaskNetwork(const TaskOptions& options) {
  if (options.tls.empty()) {
    if (!options.remote_address.empty()) {
      LOG(WARNING) << "--insecure: any process that reaches this task's port "
                      "can give it "
                      "work and read what it sends";
    }
    return Network::Grpc();
  }
  absl::StatusOr<std::unique_ptr<TlsContext>> tls = LoadTls(options);
  if (!tls.ok()) return WithExitCode(tls.status(), ExitCode::kUsage);
  return MakeTlsNetwork(*std::move(tls),
                        {.local_connections = options.local_connections})
      .release();
}

}  // namespace muster
