#ifndef COMMON_NET_RPC_LOCAL_CONNECTIONS_H_
#define COMMON_NET_RPC_LOCAL_CONNECTIONS_H_

#include <grpcpp/server.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/core/system/file_descriptor.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/method_access.h"

namespace muster {

// A server's connections to tasks on its own host, over Unix sockets and
// without encryption. A task opens such a connection with a call over mutual
// TLS, which authenticates the task. The response to this call contains a
// secret for this task only. Each call on the connection carries the secret.
//
// Thread-safe.
class LocalConnections {
 public:
  // `job` is the job of the server's own certificate.
  LocalConnections(std::string job, bool is_enabled)
      : job_(std::move(job)), is_enabled_(is_enabled) {}

  // Makes connections lead to `server`, which is borrowed until End().
  void Begin(grpc::Server* server) ABSL_LOCKS_EXCLUDED(mutex_);
  // Opens no more connections, and closes the tethers, which tells the clients
  // that their connections are ending.
  void End() ABSL_LOCKS_EXCLUDED(mutex_);

  // Answers kOpenLocalConnectionMethod. The request's identity has been
  // compared with the caller's certificate.
  //   kFailedPrecondition  local connections are disabled here, or the caller
  //                        runs on another host, runs as another user, or does
  //                        not listen on its socket
  //   kUnavailable         the server is shutting down
  //   kInvalidArgument     the request is invalid
  absl::StatusOr<Message> Open(const ReceivedMessage& request)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the task `name` ("worker 1") if `secret` is the secret that was
  // sent to this task.
  //   kUnauthenticated  `secret` differs, or none was sent to the task
  absl::StatusOr<SpiffeId> FindCaller(absl::string_view name,
                                      absl::string_view secret) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Caller {
    SpiffeId task;
    std::string secret;
  };

  absl::StatusOr<std::string> SecretOf(absl::string_view name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string job_;
  const bool is_enabled_;
  mutable absl::Mutex mutex_;
  grpc::Server* server_ ABSL_GUARDED_BY(mutex_) = nullptr;
  // The tethers of connections that may still exist.
  std::vector<FileDescriptor> tethers_ ABSL_GUARDED_BY(mutex_);
  // By task name. At most one entry for each task that has a certificate.
  std::map<std::string, Caller, std::less<>> callers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COMMON_NET_RPC_LOCAL_CONNECTIONS_H_
