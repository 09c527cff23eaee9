#ifndef COMMON_NET_RPC_LOCAL_ROUTE_H_
#define COMMON_NET_RPC_LOCAL_ROUTE_H_

#include <grpcpp/generic/generic_stub.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/core/system/file_descriptor.h"

namespace muster {

// A client's end of a connection over a Unix socket.
struct LocalConnection {
  grpc::GenericStub stub;
  // Shows the server which task calls.
  std::string secret;
  FileDescriptor tether;
};

// Decides whether a channel reaches its peer over a local connection. A call
// over TLS opens the connection, and opens another one after it has ended.
//
// Thread-safe.
class LocalRoute {
 public:
  using Connection = std::shared_ptr<LocalConnection>;
  using Start = absl::AnyInvocable<void(Connection)>;

  // `open` starts the call that opens a connection. For each call of `open` the
  // caller calls SetOutcome() once, possibly before `open` returns.
  explicit LocalRoute(std::function<void()> open) : open_(std::move(open)) {}

  // Returns the connection, or null if there is none. If there is none, starts
  // to open it unless the peer has refused to. Does not block.
  Connection Get() ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls `start` with the connection, or with null if there is none. If the
  // connection is being opened, the call follows SetOutcome().
  void WhenKnown(Start start) ABSL_LOCKS_EXCLUDED(mutex_);

  // Reports the outcome of `open`. If the peer could not be reached, a later
  // Get() or WhenKnown() asks it again. Every other error is a refusal.
  void SetOutcome(absl::StatusOr<Connection> outcome)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Reports that the peer could not be reached, or that it may be another
  // process now. A refusal no longer counts, and `failed` is not used again.
  // `failed` is null if the call went over TLS.
  void Forget(const Connection& failed) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  enum class State { kUnknown, kOpening, kOpen, kRefused };

  // Returns true if the caller must call open_().
  bool BeginOpening() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<void()> open_;
  absl::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kUnknown;
  Connection connection_ ABSL_GUARDED_BY(mutex_);  // If it is open.
  std::vector<Start> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COMMON_NET_RPC_LOCAL_ROUTE_H_
