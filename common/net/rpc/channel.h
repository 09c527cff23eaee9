#ifndef COMMON_NET_RPC_CHANNEL_H_
#define COMMON_NET_RPC_CHANNEL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/service.h"

namespace muster {

struct CallOptions {
  // How long the call may take, connecting included. Every wait has an end.
  absl::Duration timeout = absl::Seconds(30);
  // Waits within the timeout for a peer that cannot be reached, instead of
  // failing at once.
  bool wait_for_ready = false;
};

// The way to one task. Thread-safe.
//
// Every error carries a TaskFailure naming the peer, what was attempted and how
// long it took:
//   kUnavailable       the peer cannot be reached, or the connection broke
//   kDeadlineExceeded  no answer in time
//   kUnimplemented     the peer has no such method
//   kPermissionDenied, kFailedPrecondition  as AdmissionCheck::Check
//   anything else      is the handler's answer
class Channel {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<ReceivedMessage>)>;

  virtual ~Channel() = default;

  // "worker 1 (localhost:2222)".
  virtual std::string peer() const = 0;

  // From now on requests say that they are meant for this process only; 0 for
  // whichever process answers.
  virtual void SetTargetIncarnation(uint64_t incarnation) = 0;
  virtual uint64_t target_incarnation() const = 0;
  // The job that requests speak for from now on.
  virtual void SetJobId(absl::string_view job_id) = 0;

  // Starts a call. `done` runs once, on a thread of the transport, and must not
  // wait. The channel must not be destroyed by `done`.
  virtual void StartCall(absl::string_view method, const Message& request,
                         const CallOptions& options, Done done) = 0;

  // Opens a stream; it has no timeout. A peer that cannot be reached is told to
  // the observer's OnDone(). The observer is kept until then.
  virtual std::shared_ptr<Stream> OpenStream(
      absl::string_view method, std::shared_ptr<StreamObserver> observer) = 0;

  // StartCall() and wait. Not for the transport's threads.
  absl::StatusOr<ReceivedMessage> CallAndWait(absl::string_view method,
                                              const Message& request,
                                              const CallOptions& options);

  // The same for a method that takes and gives one protobuf.
  template <typename Response, typename Request>
  absl::StatusOr<Response> Call(absl::string_view method,
                                const Request& request,
                                const CallOptions& options) {
    absl::StatusOr<ReceivedMessage> received =
        CallAndWait(method, Message{request.SerializeAsString(), {}}, options);
    if (!received.ok()) return received.status();
    return received->template ParseBody<Response>();
  }
};

}  // namespace muster

#endif  // COMMON_NET_RPC_CHANNEL_H_
