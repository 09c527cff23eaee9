#include "common/net/rpc/local_connections.h"

#include <grpcpp/server_posix.h>

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/metrics.h"
#include "common/net/rpc/local_handshake.h"
#include "common/net/rpc/secret.h"
#include "proto/local_connection.pb.h"
#include "proto/rpc.pb.h"

namespace muster {
namespace {

constexpr MetricInfo kOpened = {
    "muster_local_connections_opened_total",
    "Connections over Unix sockets that tasks of this host opened to this one, "
    "after TLS had identified them."};

}  // namespace

void LocalConnections::Begin(grpc::Server* server) {
  absl::MutexLock lock(&mutex_);
  server_ = server;
}

void LocalConnections::End() {
  absl::MutexLock lock(&mutex_);
  server_ = nullptr;
  tethers_.clear();
}

absl::StatusOr<Message> LocalConnections::Open(const ReceivedMessage& request) {
  if (!is_enabled_) {
    return absl::FailedPreconditionError(
        "local connections are disabled on the server");
  }
  ASSIGN_OR_RETURN(const auto offer,
                   request.ParseBody<proto::OpenLocalConnectionRequest>());
  ASSIGN_OR_RETURN(LocalSockets sockets, ConnectTo(offer));
  proto::OpenLocalConnectionResponse response;
  grpc::Server* server = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    if (server_ == nullptr) {
      return absl::UnavailableError("the server is shutting down");
    }
    server = server_;
    ASSIGN_OR_RETURN(*response.mutable_secret(),
                     SecretOf(request.identity().caller_task()));
    std::erase_if(tethers_, HasEnded);
    tethers_.push_back(std::move(sockets.tether));
  }
  // `server` is still alive: a server waits for its calls, such as this one.
  grpc::AddInsecureChannelFromFd(server, sockets.calls.Release());
  static Counter* const opened = GetCounter(kOpened);
  opened->Add();
  return Message{response.SerializeAsString(), {}};
}

absl::StatusOr<SpiffeId> LocalConnections::FindCaller(
    absl::string_view name, absl::string_view secret) const {
  absl::ReaderMutexLock lock(&mutex_);
  const auto found = callers_.find(name);
  if (found == callers_.end() || !IsSameSecret(found->second.secret, secret)) {
    return absl::UnauthenticatedError(
        "the call is on a local connection and does not show the secret of its "
        "task");
  }
  return found->second.task;
}

absl::StatusOr<std::string> LocalConnections::SecretOf(absl::string_view name) {
  const auto found = callers_.find(name);
  if (found != callers_.end()) return found->second.secret;
  ASSIGN_OR_RETURN(
      SpiffeId task,
      ParseSpiffeId(absl::StrCat("spiffe://muster/", job_, "/",
                                 absl::StrReplaceAll(name, {{" ", "/"}}))));
  std::string secret = RandomSecret();
  callers_.emplace(name, Caller{std::move(task), secret});
  return secret;
}

}  // namespace muster
