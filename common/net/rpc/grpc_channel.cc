#include "common/net/rpc/grpc_channel.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/client_callback.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/net/rpc/fault_point.h"
#include "common/net/rpc/grpc_convert.h"
#include "common/net/rpc/hand_over.h"
#include "common/net/rpc/local_handshake.h"
#include "common/net/rpc/local_route.h"
#include "common/net/rpc/peer.h"
#include "common/net/rpc/seen_calls.h"
#include "proto/local_connection.pb.h"
#include "proto/rpc.pb.h"

namespace muster {
namespace {

// Timeout of the call that opens a local connection. Streams wait for this
// call. A peer on this host answers it within a millisecond.
constexpr absl::Duration kOpenTimeout = absl::Seconds(2);

grpc::ChannelArguments MakeArguments(const ChannelOptions& options) {
  grpc::ChannelArguments arguments;
  const int message_bytes_max = static_cast<int>(std::min<size_t>(
      options.message_bytes_max, std::numeric_limits<int>::max()));
  arguments.SetMaxReceiveMessageSize(message_bytes_max);
  arguments.SetMaxSendMessageSize(-1);
  // By default gRPC waits a second before it first reconnects, and then longer.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 20);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
  // In spite of its name, this is the timeout of one attempt to connect, with
  // the TLS handshake: several times the delay of a wide-area network.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  // A restarted peer may have another address. gRPC resolves a name again only
  // after this time, which is 30 s by default.
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 500);
  // Callers retry, because gRPC cannot tell which calls are idempotent.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 16777215);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 20);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, options.probes_bandwidth);
  arguments.SetInt(GRPC_ARG_HTTP2_WRITE_BUFFER_SIZE, 1 << 20);
  arguments.SetInt(GRPC_ARG_TCP_READ_CHUNK_SIZE, 4 << 20);
  arguments.SetInt(GRPC_ARG_TCP_MIN_READ_CHUNK_SIZE, 1 << 20);
  arguments.SetInt(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, 4 << 20);
  const int keepalive_ms =
      static_cast<int>(absl::ToInt64Milliseconds(options.keepalive));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, keepalive_ms);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, keepalive_ms);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // A cluster's traffic does not go through a web proxy.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return arguments;
}

// The state that all calls of a channel share.
class CallSource : public std::enable_shared_from_this<CallSource> {
 public:
  CallSource(const ChannelOptions& options, const TlsContext* tls,
             bool uses_local_connections)
      : peer_(options, tls != nullptr),
        id_(RandomIdentity()),
        arguments_(MakeArguments(options)),
        stub_(grpc::CreateCustomChannel(
            options.address,
            tls == nullptr ? grpc::InsecureChannelCredentials()
                           : tls->ChannelCredentials(options.peer_task_type,
                                                     options.peer_task_index),
            arguments_)) {
    if (tls != nullptr && uses_local_connections) {
      local_ = std::make_unique<LocalRoute>([this] { OpenLocalConnection(); });
    }
  }

  Peer& peer() { return peer_; }
  CallId NextCall() { return {.channel = id_, .number = ++last_number_}; }

  // Returns the stub for a call over `local`, or over TCP if `local` is null.
  grpc::GenericStub& stub(const LocalRoute::Connection& local) {
    return local == nullptr ? stub_ : local->stub;
  }
  // Null if the channel uses TCP only.
  LocalRoute* local() { return local_.get(); }
  // Records that a call over `local`, or over TCP if `local` is null, could not
  // reach the peer.
  void NoteUnreachable(const LocalRoute::Connection& local) {
    if (local_ != nullptr) local_->Forget(local);
  }

 private:
  // Asks the peer over TLS for a local connection.
  void OpenLocalConnection();
  absl::StatusOr<LocalRoute::Connection> TakeLocalConnection(
      const absl::StatusOr<ReceivedMessage>& answer, LocalOffer* offer);

  Peer peer_;
  const uint64_t id_;
  std::atomic<uint64_t> last_number_{0};
  const grpc::ChannelArguments arguments_;
  grpc::GenericStub stub_;
  std::unique_ptr<LocalRoute> local_;
};

// Adds the caller's task and the id of the call to the call's metadata; on a
// local connection also the caller's secret.
void AddCaller(const proto::RequestIdentity& identity, CallSource* source,
               const LocalRoute::Connection& local,
               grpc::ClientContext* context) {
  AddIdentity(identity, context);
  AddCallId(source->NextCall(), context);
  if (local != nullptr) AddLocalSecret(local->secret, context);
}

// One request and its response. Deletes itself when the call is done.
class UnaryCall final : public grpc::ClientUnaryReactor {
 public:
  UnaryCall(std::shared_ptr<CallSource> source, absl::string_view method,
            Channel::Done done)
      : source_(std::move(source)),
        method_(method),
        start_time_(Clock::Real()->Now()),
        done_(std::move(done)) {}

  void Start(const Message& request, const CallOptions& options) {
    LocalRoute* const local = source_->local();
    StartOver(local == nullptr ? nullptr : local->Get(), request, options);
  }

  // Starts the call over `local`, or over TCP if `local` is null.
  void StartOver(LocalRoute::Connection local, const Message& request,
                 const CallOptions& options) {
    local_ = std::move(local);
    identity_ = source_->peer().SignRequest();
    request_ = ToByteBuffer(EncodeMessage(identity_, request));
    deadline_ = GrpcDeadline(options.timeout);
    wait_for_ready_ = options.wait_for_ready;
    Send();
  }

  void OnDone(const grpc::Status& status) override {
    made_.Take();
    if (!status.ok() && WasRepeated(context_)) {
      // The request was duplicated on the way, and this is the answer to the
      // duplicate. The outcome of the first copy is unknown, so the request is
      // sent again as a new call.
      (new UnaryCall(*this))->Send();
      delete this;
      return;
    }
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
      source_->NoteUnreachable(local_);
    }
    absl::StatusOr<ReceivedMessage> response =
        status.ok() ? ReceivedMessage::Parse(FromByteBuffer(response_))
                    : FromGrpcStatus(status);
    if (!response.ok()) {
      response = source_->peer().AddContext(response.status(), method_,
                                            Clock::Real()->Now() - start_time_);
    }
    Channel::Done done = std::move(done_);
    delete this;
    done(std::move(response));
  }

 private:
  // Repeats the request of `earlier` as a new call with the same deadline.
  explicit UnaryCall(UnaryCall& earlier)
      : source_(earlier.source_),
        method_(earlier.method_),
        start_time_(earlier.start_time_),
        done_(std::move(earlier.done_)),
        local_(earlier.local_),
        identity_(earlier.identity_),
        deadline_(earlier.deadline_),
        wait_for_ready_(earlier.wait_for_ready_),
        request_(earlier.request_) {}

  void Send() {
    AddCaller(identity_, source_.get(), local_, &context_);
    context_.set_deadline(deadline_);
    context_.set_wait_for_ready(wait_for_ready_);
    made_.Give();
    source_->stub(local_).PrepareUnaryCall(
        &context_, method_, grpc::StubOptions(), &request_, &response_, this);
    StartCall();
  }

  const std::shared_ptr<CallSource> source_;
  const std::string method_;
  const absl::Time start_time_;
  Channel::Done done_;
  LocalRoute::Connection local_;
  proto::RequestIdentity identity_;
  gpr_timespec deadline_ = {};
  bool wait_for_ready_ = false;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
  HandOver made_;
};

void CallSource::OpenLocalConnection() {
  absl::StatusOr<LocalOffer> made = LocalOffer::Make();
  if (!made.ok()) {
    local_->SetOutcome(made.status());
    return;
  }
  auto offer = std::make_shared<LocalOffer>(*std::move(made));
  const Message request{offer->request().SerializeAsString(), {}};
  auto* const call =
      new UnaryCall(shared_from_this(), kOpenLocalConnectionMethod,
                    [source = shared_from_this(),
                     offer](const absl::StatusOr<ReceivedMessage>& answer) {
                      source->local_->SetOutcome(
                          source->TakeLocalConnection(answer, offer.get()));
                    });
  call->StartOver(/*local=*/nullptr, request, {.timeout = kOpenTimeout});
}

absl::StatusOr<LocalRoute::Connection> CallSource::TakeLocalConnection(
    const absl::StatusOr<ReceivedMessage>& answer, LocalOffer* offer) {
  RETURN_IF_ERROR(answer.status());
  ASSIGN_OR_RETURN(const auto response,
                   answer->ParseBody<proto::OpenLocalConnectionResponse>());
  ASSIGN_OR_RETURN(LocalSockets sockets, offer->Take());
  auto channel = grpc::CreateCustomInsecureChannelFromFd(
      peer_.name(), sockets.calls.Release(), arguments_);
  return LocalRoute::Connection(
      new LocalConnection{.stub = grpc::GenericStub(std::move(channel)),
                          .secret = response.secret(),
                          .tether = std::move(sockets.tether)});
}

class ClientStream;

// gRPC's side of a client stream. Deletes itself when the call is done.
class ClientReactor final
    : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  ClientReactor(std::shared_ptr<CallSource> source, std::string method,
                std::shared_ptr<StreamObserver> observer)
      : source_(std::move(source)),
        method_(std::move(method)),
        start_time_(Clock::Real()->Now()),
        observer_(std::move(observer)) {}

  std::shared_ptr<ClientStream> Start();

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnWritesDoneDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  grpc::ClientContext* context() { return &context_; }

 private:
  void StartOver(LocalRoute::Connection local);

  const std::shared_ptr<CallSource> source_;
  const std::string method_;
  const absl::Time start_time_;
  const std::shared_ptr<StreamObserver> observer_;
  std::shared_ptr<ClientStream> stream_;
  LocalRoute::Connection local_;
  grpc::ClientContext context_;
  grpc::ByteBuffer incoming_;
  HandOver made_;
};

// The user's side of a client stream. A hold (AddHold()) keeps the call open
// until no thread can start a write or the half-close any more.
class ClientStream final : public Stream {
 public:
  ClientStream(std::shared_ptr<CallSource> source, ClientReactor* reactor)
      : source_(std::move(source)), reactor_(reactor) {}

  absl::Status Send(const Message& message) override {
    grpc::ByteBuffer buffer =
        ToByteBuffer(EncodeMessage(source_->peer().SignRequest(), message));
    {
      absl::MutexLock lock(&mutex_);
      if (is_over_ || is_half_closed_) {
        return absl::UnavailableError(absl::StrCat(
            "the stream to ", source_->peer().name(), " has ended"));
      }
      if (queue_.size() >= kQueuedMessageCountMax) {
        return absl::ResourceExhaustedError(absl::StrCat(
            kQueuedMessageCountMax, " messages already wait to go to ",
            source_->peer().name()));
      }
      queue_.push_back(std::move(buffer));
    }
    Advance();
    return absl::OkStatus();
  }

  void Finish(absl::Status) override {
    {
      absl::MutexLock lock(&mutex_);
      is_half_closed_ = true;
    }
    Advance();
  }

  void Cancel() override {
    absl::MutexLock lock(&mutex_);
    if (!is_over_) reactor_->context()->TryCancel();
  }

  // Called once the call is started: gRPC accepts writes from now on.
  void OnStarted() {
    {
      absl::MutexLock lock(&mutex_);
      is_started_ = true;
    }
    Advance();
  }

  void OnWriteDone(bool ok) {
    {
      absl::MutexLock lock(&mutex_);
      is_writing_ = false;
      queue_.pop_front();
      // The reason arrives later, with the status of the call.
      if (!ok) queue_.clear();
    }
    Advance();
  }

  void OnHalfCloseDone() {
    {
      absl::MutexLock lock(&mutex_);
      is_half_closing_ = false;
    }
    Advance();
  }

  // Called after the last read: the call is about to end.
  void OnReadsEnded() {
    {
      absl::MutexLock lock(&mutex_);
      is_over_ = true;
      if (queue_.size() > 1) queue_.resize(1);
      if (!is_writing_) queue_.clear();
    }
    Advance();
  }

 private:
  // Starts the next write or the half-close, or releases the hold on the call.
  // gRPC may call back at once and on this thread, so these run without the
  // lock. While `is_writing_` or `is_half_closing_` is set, the hold stays.
  void Advance() {
    enum { kNothing, kWrite, kHalfClose, kRelease } action = kNothing;
    grpc::ByteBuffer* next = nullptr;
    {
      absl::MutexLock lock(&mutex_);
      if (!is_started_ || is_writing_ || is_half_closing_ || is_released_) {
        return;
      }
      if (!queue_.empty()) {
        is_writing_ = true;
        next = &queue_.front();
        action = kWrite;
      } else if (is_over_) {
        is_released_ = true;
        action = kRelease;
      } else if (is_half_closed_ && !was_half_closed_) {
        was_half_closed_ = true;
        is_half_closing_ = true;
        action = kHalfClose;
      }
    }
    if (action == kWrite) reactor_->StartWrite(next);
    if (action == kHalfClose) {
      FaultPoint("rpc.before_half_close").IgnoreError();  // Only a delay.
      reactor_->StartWritesDone();
    }
    if (action == kRelease) reactor_->RemoveHold();
  }

  const std::shared_ptr<CallSource> source_;
  // Used only until the hold is released.
  ClientReactor* const reactor_;
  absl::Mutex mutex_;
  std::deque<grpc::ByteBuffer> queue_ ABSL_GUARDED_BY(mutex_);
  bool is_started_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;      // The queue's front.
  bool is_half_closed_ ABSL_GUARDED_BY(mutex_) = false;  // No more Send().
  bool is_half_closing_ ABSL_GUARDED_BY(mutex_) = false;
  // StartWritesDone() was called.
  bool was_half_closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_released_ ABSL_GUARDED_BY(mutex_) = false;
};

std::shared_ptr<ClientStream> ClientReactor::Start() {
  auto stream = std::make_shared<ClientStream>(source_, this);
  stream_ = stream;
  if (source_->local() == nullptr) {
    StartOver(nullptr);
  } else {
    source_->local()->WhenKnown(
        [this](LocalRoute::Connection local) { StartOver(std::move(local)); });
  }
  return stream;
}

void ClientReactor::StartOver(LocalRoute::Connection local) {
  // The call may be done, and this object deleted, before StartCall() returns.
  const std::shared_ptr<ClientStream> stream = stream_;
  local_ = std::move(local);
  AddCaller(source_->peer().SignRequest(), source_.get(), local_, &context_);
  source_->stub(local_).PrepareBidiStreamingCall(&context_, method_,
                                                 grpc::StubOptions(), this);
  made_.Give();
  AddHold();
  StartRead(&incoming_);
  StartCall();
  stream->OnStarted();
}

void ClientReactor::OnReadDone(bool ok) {
  made_.Take();
  if (!ok) {
    stream_->OnReadsEnded();
    return;
  }
  absl::StatusOr<ReceivedMessage> message =
      ReceivedMessage::Parse(FromByteBuffer(incoming_));
  incoming_.Clear();
  if (message.ok()) {
    observer_->OnMessage(*std::move(message));
  } else {
    context_.TryCancel();
  }
  StartRead(&incoming_);
}

void ClientReactor::OnWriteDone(bool ok) {
  made_.Take();
  stream_->OnWriteDone(ok);
}

void ClientReactor::OnWritesDoneDone(bool) {
  made_.Take();
  stream_->OnHalfCloseDone();
}

void ClientReactor::OnDone(const grpc::Status& status) {
  made_.Take();
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    source_->NoteUnreachable(local_);
  }
  observer_->OnDone(source_->peer().AddContext(
      FromGrpcStatus(status), method_, Clock::Real()->Now() - start_time_));
  delete this;
}

class GrpcChannel final : public Channel {
 public:
  GrpcChannel(const ChannelOptions& options, const TlsContext* tls,
              bool uses_local_connections)
      : source_(std::make_shared<CallSource>(options, tls,
                                             uses_local_connections)) {}

  std::string peer() const override { return source_->peer().name(); }
  void SetTargetIncarnation(uint64_t incarnation) override {
    source_->peer().SetTargetIncarnation(incarnation);
    // Another process of the peer may have refused a local connection.
    if (source_->local() != nullptr) source_->local()->Forget(nullptr);
  }
  uint64_t target_incarnation() const override {
    return source_->peer().target_incarnation();
  }
  void SetJobId(absl::string_view job_id) override {
    source_->peer().SetJobId(job_id);
  }

  void StartCall(absl::string_view method, const Message& request,
                 const CallOptions& options, Done done) override {
    (new UnaryCall(source_, method, std::move(done)))->Start(request, options);
  }

  std::shared_ptr<Stream> OpenStream(
      absl::string_view method,
      std::shared_ptr<StreamObserver> observer) override {
    return (new ClientReactor(source_, std::string(method),
                              std::move(observer)))
        ->Start();
  }

 private:
  const std::shared_ptr<CallSource> source_;
};

}  // namespace

std::unique_ptr<Channel> MakeGrpcChannel(const ChannelOptions& options,
                                         const TlsContext* tls,
                                         bool uses_local_connections) {
  return std::make_unique<GrpcChannel>(options, tls, uses_local_connections);
}

}  // namespace muster
