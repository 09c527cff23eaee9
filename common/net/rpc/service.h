#ifndef COMMON_NET_RPC_SERVICE_H_
#define COMMON_NET_RPC_SERVICE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/net/rpc/message.h"

namespace muster {

// One end of an open stream. Thread-safe.
class Stream {
 public:
  virtual ~Stream() = default;

  // Queues a message. Messages arrive in the order sent.
  //   kResourceExhausted  too many wait already; the receiver must give credit
  //   kUnavailable        the stream has ended
  virtual absl::Status Send(const Message& message) = 0;

  // No more messages from this end; what is queued still goes out. A server's
  // Finish ends the stream with `status`; a client's half-closes it, and the
  // status is not sent.
  virtual void Finish(absl::Status status) = 0;

  // Ends the stream at once from either side. OnDone() follows.
  virtual void Cancel() = 0;
};

// The events of one end. Called on the transport's threads, one call
// at a time, so it must not wait.
class StreamObserver {
 public:
  virtual ~StreamObserver() = default;

  virtual void OnMessage(ReceivedMessage message) = 0;
  // The other end sends no more. Servers only.
  virtual void OnHalfClose() {}
  // The last call. For a client the status the server finished with, or why the
  // stream broke; for a server, OK or kCancelled.
  virtual void OnDone(const absl::Status& status) = 0;
};

// Answers one request. Thread-safe, and may outlive the handler that got it;
// destroyed unanswered, it answers kInternal.
class Responder {
 public:
  using Send = absl::AnyInvocable<void(absl::StatusOr<Message>)>;

  explicit Responder(Send send) : send_(std::move(send)) {}
  Responder(Responder&& other) noexcept
      : send_(std::exchange(other.send_, nullptr)) {}
  Responder& operator=(Responder&&) = delete;
  ~Responder() {
    if (send_) Respond(absl::InternalError("the request was dropped"));
  }

  // Once.
  void Respond(absl::StatusOr<Message> response) {
    std::exchange(send_, nullptr)(std::move(response));
  }

 private:
  Send send_;
};

// The methods of a server, by name: "/muster.ParameterServer/Push".
//
// Handlers run on the transport's few threads: work of milliseconds is fine,
// waiting is not. The server's AdmissionCheck has let the request in.
class Service {
 public:
  using UnaryHandler = std::function<void(ReceivedMessage, Responder)>;
  // Called when a stream opens. The observer lives until OnDone() returns;
  // `stream` may be kept longer.
  using StreamHandler = std::function<std::shared_ptr<StreamObserver>(
      std::shared_ptr<Stream> stream)>;

  void AddUnary(absl::string_view method, UnaryHandler handler);
  void AddStream(absl::string_view method, StreamHandler handler);

  // handler: (const Request&) -> absl::StatusOr<Response>, both protobufs.
  template <typename Request, typename Response, typename Handler>
  void AddCall(absl::string_view method, Handler handler);

  // Null if there is none.
  const UnaryHandler* FindUnary(absl::string_view method) const;
  const StreamHandler* FindStream(absl::string_view method) const;

 private:
  absl::flat_hash_map<std::string, UnaryHandler> unary_;
  absl::flat_hash_map<std::string, StreamHandler> streams_;
};

template <typename Request, typename Response, typename Handler>
void Service::AddCall(absl::string_view method, Handler handler) {
  AddUnary(method, [handler = std::move(handler)](ReceivedMessage message,
                                                  Responder responder) {
    absl::StatusOr<Request> request = message.ParseBody<Request>();
    if (!request.ok()) {
      responder.Respond(request.status());
      return;
    }
    absl::StatusOr<Response> response = handler(*request);
    if (!response.ok()) {
      responder.Respond(response.status());
      return;
    }
    responder.Respond(Message{response->SerializeAsString(), {}});
  });
}

}  // namespace muster

#endif  // COMMON_NET_RPC_SERVICE_H_
