#include "common/net/rpc/grpc_server.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/memory_limits.h"
#include "common/core/system/metrics.h"
#include "common/net/rpc/bounded_log.h"
#include "common/net/rpc/fault_point.h"
#include "common/net/rpc/grpc_convert.h"
#include "common/net/rpc/grpc_shutdown.h"
#include "common/net/rpc/hand_over.h"
#include "common/net/rpc/local_connections.h"
#include "common/net/rpc/local_handshake.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/method_access.h"
#include "common/net/rpc/peer_calls.h"
#include "common/net/rpc/port_check.h"
#include "common/net/rpc/refused_requests.h"
#include "common/net/rpc/seen_calls.h"
#include "proto/rpc.pb.h"

namespace muster {
namespace {

constexpr MetricInfo kRepeated = {
    "muster_repeated_calls_refused_total",
    "Calls that had arrived before and were not carried out again."};

// Sent with every response, so that the caller can tell which process answered.
proto::RequestIdentity OwnIdentity(const AdmissionCheck& admission_check) {
  proto::RequestIdentity identity;
  identity.set_job_id(admission_check.job_id());
  identity.set_caller_task(admission_check.self().ToString());
  identity.set_caller_incarnation(admission_check.self().incarnation);
  return identity;
}

// Maximum number of concurrent calls on one connection. A peer has a few for
// each of its replicas. Further calls wait at the peer.
constexpr int kStreamCountMax = 1024;
// Maximum number of calls in progress of one peer, over all its connections.
// More are refused.
constexpr int kPeerCallCountMax = 4 * kStreamCountMax;
// Requests that have arrived and are not handled yet may use the process'
// memory divided by kMemoryDivisor, but at least kMemoryBytesMin.
constexpr size_t kMemoryDivisor = 2;
constexpr size_t kMemoryBytesMin = size_t{1} << 30;
// A connection whose handshake takes longer is closed.
constexpr absl::Duration kHandshakeTimeout = absl::Seconds(20);

// The checks that a server makes of every call.
struct CallAdmission {
  AdmissionCheck& admission_check;
  const TlsContext* tls;
  const LocalConnections& local_connections;
  BoundedLog refusals;
  SeenCalls seen;
  PeerCalls calls{kPeerCallCountMax};

  // Checks a call before any of its messages is read. Returns the caller's task
  // name.
  //   kUnauthenticated   the call names a task that neither the certificate
  //                      nor, on a local connection, the secret proves; or that
  //                      task belongs to another job
  //   kPermissionDenied  the caller's role may not call the method
  //   as AdmissionCheck::Check()
  absl::StatusOr<std::string> AdmitCall(
      const grpc::GenericCallbackServerContext& context) const {
    const proto::RequestIdentity identity = IdentityOf(context);
    if (tls != nullptr) {
      const absl::StatusOr<SpiffeId> caller =
          IsCertified(context)
              ? CertifiedCaller(context)
              : local_connections.FindCaller(identity.caller_task(),
                                             LocalSecretOf(context));
      if (!caller.ok() || caller->job != tls->self().job ||
          caller->TaskName() != identity.caller_task()) {
        CountRefusedRequest("certificate");
        return absl::UnauthenticatedError(absl::StrCat(
            "the call names the caller \"", identity.caller_task(),
            "\", but its certificate or secret does not belong to that task of "
            "this job"));
      }
      if (!MayCall(caller->role, context.method())) {
        CountRefusedRequest("role");
        return absl::PermissionDeniedError(absl::StrCat(
            caller->TaskName(), " may not call ", context.method()));
      }
    }
    RETURN_IF_ERROR(admission_check.Check(identity));
    return identity.caller_task();
  }

  absl::StatusOr<ReceivedMessage> AdmitMessage(
      const grpc::ByteBuffer& buffer, absl::string_view caller_task,
      bool checks_identity = true) const {
    RETURN_IF_ERROR(FaultPoint("rpc.admission_check"));
    ASSIGN_OR_RETURN(ReceivedMessage message,
                     ReceivedMessage::Parse(FromByteBuffer(buffer)));
    if (message.identity().caller_task() != caller_task) {
      return absl::PermissionDeniedError(
          "the message names another caller than the call did");
    }
    if (checks_identity) {
      RETURN_IF_ERROR(admission_check.Check(message.identity()));
    }
    return message;
  }

  // Counts the call as one of its peer: with TLS the authenticated task,
  // without TLS the host that the call comes from.
  absl::StatusOr<PeerCalls::Call> BeginCall(
      const grpc::GenericCallbackServerContext& context,
      absl::string_view caller_task) {
    const std::string address = context.peer();
    absl::StatusOr<PeerCalls::Call> call =
        calls.Begin(tls != nullptr ? caller_task
                                   : absl::string_view(address).substr(
                                         0, address.rfind(':')));
    if (!call.ok()) CountRefusedRequest("too_many_calls");
    return call;
  }

  // Logs a refusal, except of requests for an earlier process of this task:
  // these are normal after a restart of the task.
  void NoteRefusal(const grpc::GenericCallbackServerContext& context,
                   const absl::Status& why) {
    if (absl::IsFailedPrecondition(why) && !IsOfEarlierCoordinator(why)) return;
    refusals.Write(absl::StrCat("refused ", context.peer(), ", ",
                                context.method(), ": ", why.message()));
  }
};

class RefusingReactor final : public grpc::ServerGenericBidiReactor {
 public:
  explicit RefusingReactor(const absl::Status& status) {
    Finish(ToGrpcStatus(status));
  }
  void OnDone() override { delete this; }
};

// One request and one response. Lives until gRPC has sent the response. There
// is always one, because a Responder that is destroyed unused sends an error.
class UnaryReactor final : public grpc::ServerGenericBidiReactor {
 public:
  UnaryReactor(const Service::UnaryHandler* handler,
               const CallAdmission* admission, std::string caller_task,
               PeerCalls::Call call, HandOver* ended)
      : handler_(handler),
        admission_(admission),
        caller_task_(std::move(caller_task)),
        call_(std::move(call)),
        ended_(ended) {
    made_.Give();
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    made_.Take();
    if (!ok) {
      Finish(ToGrpcStatus(absl::CancelledError("no request was received")));
      return;
    }
    absl::StatusOr<ReceivedMessage> message =
        admission_->AdmitMessage(request_, caller_task_);
    // The message holds references to the memory that it uses.
    request_.Clear();
    if (!message.ok()) {
      Finish(ToGrpcStatus(message.status()));
      return;
    }
    (*handler_)(*std::move(message),
                Responder([this](absl::StatusOr<Message> response) {
                  Respond(std::move(response));
                }));
  }

  void OnDone() override {
    made_.Take();
    response_given_.Take();
    HandOver* const ended = ended_;
    delete this;
    ended->Give();
  }

 private:
  void Respond(absl::StatusOr<Message> response) {
    if (!response.ok()) {
      response_given_.Give();
      Finish(ToGrpcStatus(response.status()));
      return;
    }
    response_ = ToByteBuffer(
        EncodeMessage(OwnIdentity(admission_->admission_check), *response));
    response_given_.Give();
    StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
  }

  const Service::UnaryHandler* const handler_;
  const CallAdmission* const admission_;
  const std::string caller_task_;
  const PeerCalls::Call call_;
  HandOver* const ended_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
  HandOver made_;
  HandOver response_given_;
};

// The server's end of a stream. Lives as long as any thread may call Send(),
// while the StreamReactor lives only as long as the call.
class ServerStream final : public Stream {
 public:
  ServerStream(AdmissionCheck* admission_check,
               grpc::ServerGenericBidiReactor* reactor,
               grpc::GenericCallbackServerContext* context)
      : admission_check_(admission_check),
        reactor_(reactor),
        context_(context) {}

  absl::Status Send(const Message& message) override {
    grpc::ByteBuffer buffer =
        ToByteBuffer(EncodeMessage(OwnIdentity(*admission_check_), message));
    {
      absl::MutexLock lock(&mutex_);
      if (is_finishing_) return absl::UnavailableError("the stream has ended");
      if (queue_.size() >= kQueuedMessageCountMax) {
        return absl::ResourceExhaustedError(absl::StrCat(
            kQueuedMessageCountMax, " messages already wait to be sent"));
      }
      queue_.push_back(std::move(buffer));
    }
    Advance();
    return absl::OkStatus();
  }

  void Finish(absl::Status status) override {
    {
      absl::MutexLock lock(&mutex_);
      if (is_finishing_) return;
      is_finishing_ = true;
      finish_status_ = std::move(status);
    }
    Advance();
  }

  void Cancel() override {
    absl::MutexLock lock(&mutex_);
    if (context_ != nullptr) context_->TryCancel();
  }

  void OnWriteDone(bool ok) {
    {
      absl::MutexLock lock(&mutex_);
      is_writing_ = false;
      queue_.pop_front();
      if (!ok) Break();
    }
    Advance();
  }

  void OnCancel() {
    {
      absl::MutexLock lock(&mutex_);
      was_cancelled_ = true;
      Break();
    }
    Advance();
  }

  // Called when the call is done. Returns the status for the observer.
  absl::Status OnDone() {
    absl::MutexLock lock(&mutex_);
    context_ = nullptr;
    is_finishing_ = true;
    return was_cancelled_ ? absl::CancelledError(
                                "the client cancelled the call or disconnected")
                          : absl::OkStatus();
  }

 private:
  // Drops the queued messages: nothing more can be sent.
  void Break() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const size_t keep = is_writing_ ? 1 : 0;
    if (queue_.size() > keep) queue_.resize(keep);
    if (!is_finishing_) finish_status_ = absl::CancelledError();
    is_finishing_ = true;
  }

  // Starts the next write, or finishes the call. gRPC may call back at once and
  // on this thread, so both run without the lock. `is_writing_` ensures that
  // there is one write at a time.
  void Advance() {
    grpc::ByteBuffer* next = nullptr;
    absl::Status status;
    {
      absl::MutexLock lock(&mutex_);
      if (is_writing_ || is_finished_) return;
      if (!queue_.empty()) {
        is_writing_ = true;
        next = &queue_.front();
      } else if (is_finishing_) {
        is_finished_ = true;
        status = finish_status_;
      } else {
        return;
      }
    }
    if (next != nullptr) {
      reactor_->StartWrite(next);
    } else {
      reactor_->Finish(ToGrpcStatus(status));
    }
  }

  const AdmissionCheck* const admission_check_;
  // Used only until its Finish() is called, since it may be deleted after that.
  grpc::ServerGenericBidiReactor* const reactor_;
  absl::Mutex mutex_;
  grpc::GenericCallbackServerContext* context_ ABSL_GUARDED_BY(mutex_);
  std::deque<grpc::ByteBuffer> queue_ ABSL_GUARDED_BY(mutex_);
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;    // The queue's front.
  bool is_finishing_ ABSL_GUARDED_BY(mutex_) = false;  // No more Send().
  bool is_finished_ ABSL_GUARDED_BY(mutex_) = false;   // Finish() was called.
  bool was_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status finish_status_ ABSL_GUARDED_BY(mutex_);
};

class StreamReactor final : public grpc::ServerGenericBidiReactor {
 public:
  StreamReactor(const Service::StreamHandler& handler,
                const CallAdmission* admission, std::string caller_task,
                PeerCalls::Call call, HandOver* ended,
                grpc::GenericCallbackServerContext* context)
      : admission_(admission),
        caller_task_(std::move(caller_task)),
        checks_each_message_(ChecksEachMessage(context->method())),
        call_(std::move(call)),
        ended_(ended),
        stream_(std::make_shared<ServerStream>(&admission->admission_check,
                                               this, context)),
        observer_(handler(stream_)) {
    made_.Give();
    StartRead(&incoming_);
  }

  void OnReadDone(bool ok) override {
    made_.Take();
    if (!ok) {
      observer_->OnHalfClose();
      return;
    }
    absl::StatusOr<ReceivedMessage> message =
        admission_->AdmitMessage(incoming_, caller_task_, checks_each_message_);
    incoming_.Clear();
    if (!message.ok()) {
      stream_->Finish(message.status());
      return;
    }
    observer_->OnMessage(*std::move(message));
    StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override {
    made_.Take();
    stream_->OnWriteDone(ok);
  }
  void OnCancel() override {
    made_.Take();
    stream_->OnCancel();
  }
  void OnDone() override {
    made_.Take();
    observer_->OnDone(stream_->OnDone());
    HandOver* const ended = ended_;
    delete this;
    ended->Give();
  }

 private:
  const CallAdmission* const admission_;
  const std::string caller_task_;
  const bool checks_each_message_;
  const PeerCalls::Call call_;
  HandOver* const ended_;
  const std::shared_ptr<ServerStream> stream_;
  const std::shared_ptr<StreamObserver> observer_;
  grpc::ByteBuffer incoming_;
  HandOver made_;
};

class Dispatcher final : public grpc::CallbackGenericService {
 public:
  Dispatcher(const Service* service, AdmissionCheck* admission_check,
             const TlsContext* tls, LocalConnections* local_connections)
      : service_(service),
        admission_{*admission_check, tls, *local_connections, {}, SeenCalls()} {
    if (tls == nullptr) return;
    own_methods_.AddUnary(kOpenLocalConnectionMethod,
                          [local_connections](const ReceivedMessage& request,
                                              Responder responder) {
                            responder.Respond(local_connections->Open(request));
                          });
  }

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    const absl::string_view method = context->method();
    const Service::UnaryHandler* unary = service_->FindUnary(method);
    if (unary == nullptr) unary = own_methods_.FindUnary(method);
    const Service::StreamHandler* const stream = service_->FindStream(method);
    absl::StatusOr<std::string> caller_task = admission_.AdmitCall(*context);
    if (caller_task.ok() && unary == nullptr && stream == nullptr) {
      caller_task = absl::UnimplementedError(
          absl::StrCat(admission_.admission_check.self().ToString(),
                       " has no method ", method));
    }
    if (caller_task.ok() && !admission_.seen.Add(CallIdOf(*context))) {
      static Counter* const repeated = GetCounter(kRepeated);
      repeated->Add();
      MarkRepeated(context);
      caller_task = absl::AlreadyExistsError(
          "the call has already arrived; each call is executed only once");
    }
    if (!caller_task.ok()) return Refuse(*context, caller_task.status());
    absl::StatusOr<PeerCalls::Call> call =
        admission_.BeginCall(*context, *caller_task);
    if (!call.ok()) return Refuse(*context, call.status());
    if (unary != nullptr) {
      return new UnaryReactor(unary, &admission_, *std::move(caller_task),
                              *std::move(call), &ended_);
    }
    return new StreamReactor(*stream, &admission_, *std::move(caller_task),
                             *std::move(call), &ended_, context);
  }

  // Orders the end of every call before the thread that waited for all of them.
  const HandOver& ended() const { return ended_; }

 private:
  grpc::ServerGenericBidiReactor* Refuse(
      const grpc::GenericCallbackServerContext& context,
      const absl::Status& why) {
    admission_.NoteRefusal(context, why);
    return new RefusingReactor(why);
  }

  const Service* const service_;
  Service own_methods_;
  CallAdmission admission_;
  HandOver ended_;
};

class GrpcServer final : public Server {
 public:
  GrpcServer(const Service* service, AdmissionCheck* admission_check,
             const TlsContext* tls, bool opens_local_connections)
      : tls_(tls),
        local_connections_(tls == nullptr ? "" : tls->self().job,
                           opens_local_connections),
        dispatcher_(service, admission_check, tls, &local_connections_) {}
  ~GrpcServer() override { Shutdown(absl::ZeroDuration()); }

  absl::Status Start(const ServerOptions& options) {
    grpc::ServerBuilder builder;
    int port = 0;
    const int message_bytes_max = static_cast<int>(std::min<size_t>(
        options.message_bytes_max, std::numeric_limits<int>::max()));
    builder.AddListeningPort(options.address,
                             tls_ == nullptr ? grpc::InsecureServerCredentials()
                                             : tls_->ServerCredentials(),
                             &port);
    builder.RegisterCallbackGenericService(&dispatcher_);
    builder.SetMaxReceiveMessageSize(message_bytes_max);
    builder.SetMaxSendMessageSize(-1);
    grpc::ResourceQuota quota;
    quota.Resize(
        std::max(AvailableMemoryBytes() / kMemoryDivisor, kMemoryBytesMin));
    builder.SetResourceQuota(quota);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                               kStreamCountMax);
    builder.AddChannelArgument(
        GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
        static_cast<int>(absl::ToInt64Milliseconds(kHandshakeTimeout)));
    // If a client's machine fails, its connections stay open without any error.
    // Keepalive pings detect this.
    const int keepalive_ms =
        static_cast<int>(absl::ToInt64Milliseconds(options.keepalive));
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, keepalive_ms);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, keepalive_ms);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    // Two processes must never share a port by accident.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 16777215);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 20);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE,
                               options.probes_bandwidth);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_WRITE_BUFFER_SIZE, 1 << 20);
    builder.AddChannelArgument(GRPC_ARG_TCP_READ_CHUNK_SIZE, 4 << 20);
    builder.AddChannelArgument(GRPC_ARG_TCP_MIN_READ_CHUNK_SIZE, 1 << 20);
    builder.AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, 4 << 20);
    // Clients send keepalive pings more often than gRPC allows by default.
    builder.AddChannelArgument(
        GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 100);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port == 0) {
      return absl::UnavailableError(absl::StrCat(
          "cannot listen on ", options.address,
          ": the port was taken a moment ago, or the address does not resolve; "
          "gRPC's message above says which"));
    }
    local_connections_.Begin(server_.get());
    const size_t colon = options.address.rfind(':');
    address_ = absl::StrCat(options.address.substr(0, colon), ":", port);
    return absl::OkStatus();
  }

  std::string address() const override { return address_; }

  void Shutdown(absl::Duration grace) override {
    absl::MutexLock lock(&shutdown_mutex_);
    if (server_ == nullptr) return;
    local_connections_.End();
    ShutDownGrpcServer(*server_, grace);
    server_.reset();
    dispatcher_.ended().Take();
  }

 private:
  const TlsContext* const tls_;
  LocalConnections local_connections_;
  Dispatcher dispatcher_;
  std::string address_;
  absl::Mutex shutdown_mutex_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> StartGrpcServer(
    const ServerOptions& options, const Service* service,
    AdmissionCheck* admission_check, const TlsContext* tls,
    bool opens_local_connections) {
  if (!absl::StrContains(options.address, ":")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", options.address, "\" is no address; expected host:port"));
  }
  RETURN_IF_ERROR(CheckPortIsFree(options.address));
  auto server = std::make_unique<GrpcServer>(service, admission_check, tls,
                                             opens_local_connections);
  RETURN_IF_ERROR(server->Start(options));
  return server;
}

}  // namespace muster
