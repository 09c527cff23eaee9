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
  // How long the call may take, including the time to connect.
  absl::Duration timeout = absl::Seconds(30);
  // If the peer cannot be reached, waits for it until the timeout instead of
  // failing at once.
  bool wait_for_ready = false;
};

// Sends calls and streams to one task. Thread-safe.
//
// Every error carries a TaskFailure naming the peer, what was attempted and how
// long it took:
//   kUnavailable       the peer cannot be reached, or the connection broke
//   kDeadlineExceeded  no response within the timeout
//   kUnimplemented     the peer has no such method
//   kPermissionDenied, kFailedPrecondition  as AdmissionCheck::Check
//   any other code     was returned by the peer's handler
class Channel {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<ReceivedMessage>)>;

  virtual ~Channel() = default;

  // "worker 1 (localhost:2222)".
  virtual std::string peer() const = 0;

  // Sets which process further requests are meant for: the task's process with
  // this incarnation, or any process of the task if 0.
  virtual void SetTargetIncarnation(uint64_t incarnation) = 0;
  virtual uint64_t target_incarnation() const = 0;
  // Sets the job that further requests name as theirs.
  virtual void SetJobId(absl::string_view job_id) = 0;

  // Starts a call. `done` runs once, on a thread of the transport. It must not
  // block and must not destroy the channel.
  virtual void StartCall(absl::string_view method, const Message& request,
                         const CallOptions& options, Done done) = 0;

  // Opens a stream without a timeout. If the peer cannot be reached, the
  // observer's OnDone() gets the error. The stream keeps the observer until
  // OnDone() has returned.
  virtual std::shared_ptr<Stream> OpenStream(
      absl::string_view method, std::shared_ptr<StreamObserver> observer) = 0;

  // Starts a call and blocks until it is done. Must not be called on the
  // transport's threads.
  absl::StatusOr<ReceivedMessage> CallAndWait(absl::string_view method,
                                              const Message& request,
                                              const CallOptions& options);

  // The same for a method whose request and response are one protobuf each.
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
