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
#include "common/net/rpc/spiffe_id.h"

namespace muster {

// A server's connections to tasks of its own host, over Unix sockets and
// without encryption. A task opens one with a call over mutual TLS, so the
// server knows which task it is; each call on the connection then shows a
// secret that the server told that task, and only it, over mutual TLS.
//
// Thread-safe.
class LocalConnections {
 public:
  // `job` is the job of the server's own certificate.
  LocalConnections(std::string job, bool is_enabled)
      : job_(std::move(job)), is_enabled_(is_enabled) {}

  // From now on connections lead to `server`, which is borrowed until End().
  void Begin(grpc::Server* server) ABSL_LOCKS_EXCLUDED(mutex_);
  // Opens no more, and lets the clients know that those that exist end.
  void End() ABSL_LOCKS_EXCLUDED(mutex_);

  // Answers kOpenLocalConnectionMethod. The request's identity has been
  // compared with the caller's certificate.
  //   kFailedPrecondition  this server opens none, the caller runs on another
  //                        host or as another user, or it does not listen
  //   kUnavailable         the server is shutting down
  //   kInvalidArgument     the request is invalid
  absl::StatusOr<Message> Open(const ReceivedMessage& request)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the task `name` ("worker 1") if `secret` is the one that it was
  // told.
  //   kUnauthenticated  it is not, or the task was told none
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
  // Of connections that may still exist.
  std::vector<FileDescriptor> tethers_ ABSL_GUARDED_BY(mutex_);
  // By task name. As many as the job has certificates.
  std::map<std::string, Caller, std::less<>> callers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COMMON_NET_RPC_LOCAL_CONNECTIONS_H_
