#ifndef COMMON_NET_RPC_SERVICE_H_
#define COMMON_NET_RPC_SERVICE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
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
  //   kResourceExhausted  too many messages are queued; the protocol of the
  //                       stream must limit them
  //   kUnavailable        the stream has ended
  virtual absl::Status Send(const Message& message) = 0;

  // Ends the messages of this end. Queued messages are still sent. On a server,
  // ends the stream with `status`. On a client, half-closes the stream and does
  // not send `status`.
  virtual void Finish(absl::Status status) = 0;

  // Ends the stream at once from either side. OnDone() follows.
  virtual void Cancel() = 0;
};

// Receives the events of one end of a stream. Called on the transport's
// threads, one call at a time. Must not block.
class StreamObserver {
 public:
  virtual ~StreamObserver() = default;

  virtual void OnMessage(ReceivedMessage message) = 0;
  // The client sends no more messages. Called on servers only.
  virtual void OnHalfClose() {}
  // The last call. A client gets the status with which the server finished, or
  // the error that broke the stream. A server gets OK or kCancelled.
  virtual void OnDone(const absl::Status& status) = 0;
};

// Answers one request. Thread-safe. May outlive the handler that received it.
// If it is destroyed without an answer, it sends kInternal.
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

  // Sends the response. Call it once.
  void Respond(absl::StatusOr<Message> response) {
    std::exchange(send_, nullptr)(std::move(response));
  }

 private:
  Send send_;
};

// The methods of a server, by name: "/muster.ParameterServer/Push".
//
// Handlers run on the transport's few threads: they may work for milliseconds
// but must not block. The server's AdmissionCheck has admitted the request.
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

  // Replaces the handler of each unary method so far by wrap(method, handler).
  void WrapUnary(absl::FunctionRef<UnaryHandler(absl::string_view method,
                                                UnaryHandler handler)>
                     wrap);

  // Returns null if there is no such method.
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
