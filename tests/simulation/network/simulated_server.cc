#include "tests/simulation/network/simulated_server.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/net/rpc/fault_point.h"
#include "common/net/rpc/method_access.h"
#include "common/net/rpc/peer_calls.h"
#include "common/net/rpc/seen_calls.h"
#include "proto/rpc.pb.h"
#include "tests/simulation/network/encoded_message.h"

namespace muster::sim {
namespace {

// As in grpc_server.cc.
constexpr int kPeerCallCountMax = 4 * 1024;
// How long Shutdown() waits for handlers after it has ended all connections.
constexpr absl::Duration kHandlerTimeout = absl::Seconds(60);

proto::RequestIdentity OwnIdentity(const AdmissionCheck& admission_check) {
  proto::RequestIdentity identity;
  identity.set_job_id(admission_check.job_id());
  identity.set_caller_task(admission_check.self().ToString());
  identity.set_caller_incarnation(admission_check.self().incarnation);
  return identity;
}

// What all calls of a server share.
class ServerCore : public Acceptor,
                   public std::enable_shared_from_this<ServerCore> {
 public:
  ServerCore(SimulatedTransport* transport, const Service* service,
             AdmissionCheck* admission_check)
      : transport_(transport),
        service_(service),
        admission_check_(admission_check) {}

  std::shared_ptr<PacketReceiver> OnOpen(
      const std::shared_ptr<Connection>& connection,
      const Packet& open) override;

  absl::StatusOr<ReceivedMessage> AdmitMessage(
      std::string bytes, absl::string_view caller_task,
      bool checks_identity = true) const {
    RETURN_IF_ERROR(FaultPoint("rpc.admission_check"));
    const size_t split = transport_->scheduler().Below(bytes.size() + 1);
    ASSIGN_OR_RETURN(ReceivedMessage message,
                     FromBytes(std::move(bytes), split));
    if (message.identity().caller_task() != caller_task) {
      return absl::PermissionDeniedError(
          "the message names another caller than the call did");
    }
    if (checks_identity) {
      RETURN_IF_ERROR(admission_check_->Check(message.identity()));
    }
    return message;
  }

  SimulatedTransport& transport() const { return *transport_; }
  std::string Encode(const Message& message) const {
    return ToBytes(OwnIdentity(*admission_check_), message);
  }

  // Counts the calls whose handlers or observers may be called. Returns false
  // after Close().
  bool BeginUse() {
    absl::MutexLock lock(&mutex_);
    if (is_closed_) return false;
    ++use_count_;
    return true;
  }
  void EndUse() {
    absl::MutexLock lock(&mutex_);
    --use_count_;
  }
  // No call begins from now on: a packet may be on its way to this server.
  void Close() {
    absl::MutexLock lock(&mutex_);
    is_closed_ = true;
  }
  bool AwaitUnused(absl::Duration timeout) {
    const auto is_unused = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return use_count_ == 0;
    };
    absl::MutexLock lock(&mutex_);
    return Clock::Real()->AwaitWithDeadline(
        &mutex_, absl::Condition(&is_unused), Clock::Real()->Now() + timeout);
  }

 private:
  // Returns null if the call is refused.
  std::shared_ptr<PacketReceiver> Admit(
      const std::shared_ptr<Connection>& connection, const Packet& open);
  std::shared_ptr<PacketReceiver> Refuse(
      const std::shared_ptr<Connection>& connection, const Packet& open,
      const absl::Status& why, bool was_repeated) const;

  SimulatedTransport* const transport_;
  const Service* const service_;
  AdmissionCheck* const admission_check_;
  SeenCalls seen_;
  PeerCalls calls_{kPeerCallCountMax};
  absl::Mutex mutex_;
  int use_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
};

// What both kinds of calls have in common.
struct ServerCall {
  std::shared_ptr<ServerCore> core;
  std::shared_ptr<Connection> connection;
  uint64_t call = 0;
  std::string caller_task;
  bool checks_each_message = true;
  PeerCalls::Call peer_call;

  void Send(Packet packet) const {
    packet.call = call;
    core->transport().Send(connection, Side::kServer, std::move(packet));
  }
};

class UnaryServerCall final
    : public PacketReceiver,
      public std::enable_shared_from_this<UnaryServerCall> {
 public:
  UnaryServerCall(ServerCall call, const Service::UnaryHandler* handler)
      : call_(std::move(call)), handler_(handler) {}

  void OnPacket(Packet packet) override {
    if (packet.kind == Packet::Kind::kCancel) Remove();
    if (packet.kind != Packet::Kind::kMessage) return;
    if (!call_.core->BeginUse()) return;
    absl::StatusOr<ReceivedMessage> message =
        call_.core->AdmitMessage(std::move(packet.bytes), call_.caller_task);
    if (message.ok()) {
      (*handler_)(*std::move(message),
                  Responder([self = shared_from_this()](
                                absl::StatusOr<Message> response) {
                    self->Respond(std::move(response));
                  }));
    } else {
      Respond(message.status());
    }
    call_.core->EndUse();
  }
  void OnBroken(const std::string&) override {}

 private:
  void Respond(absl::StatusOr<Message> response) {
    Packet packet = {.kind = Packet::Kind::kFinish};
    if (response.ok()) packet.bytes = call_.core->Encode(*response);
    packet.status = StatusToBytes(response.status());
    call_.Send(std::move(packet));
    Remove();
  }
  void Remove() {
    call_.core->transport().Remove(call_.connection, Side::kServer, call_.call);
  }

  const ServerCall call_;
  const Service::UnaryHandler* const handler_;
};

// Both ends of a stream on the server: what the program sends to, and what
// receives from the client.
class ServerStream final : public Stream,
                           public PacketReceiver,
                           public std::enable_shared_from_this<ServerStream> {
 public:
  explicit ServerStream(ServerCall call) : call_(std::move(call)) {}

  // Returns false if the server has shut down.
  bool Open(const Service::StreamHandler& handler) {
    if (!call_.core->BeginUse()) return false;
    observer_ = handler(shared_from_this());
    return true;
  }

  absl::Status Send(const Message& message) override {
    std::string bytes = call_.core->Encode(message);
    absl::MutexLock lock(&mutex_);
    if (is_finished_) return absl::UnavailableError("the stream has ended");
    if (call_.core->transport().InFlightCount(
            call_.connection, Side::kServer) >= kQueuedMessageCountMax) {
      return absl::ResourceExhaustedError(absl::StrCat(
          kQueuedMessageCountMax, " messages already wait to be sent"));
    }
    call_.Send({.kind = Packet::Kind::kMessage, .bytes = std::move(bytes)});
    return absl::OkStatus();
  }

  void Finish(absl::Status status) override {
    {
      absl::MutexLock lock(&mutex_);
      if (is_finished_) return;
      is_finished_ = true;
      call_.Send(
          {.kind = Packet::Kind::kFinish, .status = StatusToBytes(status)});
    }
    EndSoon(absl::OkStatus());
  }

  void Cancel() override {
    {
      absl::MutexLock lock(&mutex_);
      if (is_finished_) return;
      is_finished_ = true;
      call_.Send({.kind = Packet::Kind::kFinish,
                  .status = StatusToBytes(
                      absl::CancelledError("the server cancelled the call"))});
    }
    EndSoon(Cancelled());
  }

  void OnPacket(Packet packet) override {
    if (packet.kind == Packet::Kind::kCancel) {
      OnBroken("");
      return;
    }
    if (is_done_) return;
    if (packet.kind == Packet::Kind::kHalfClose) {
      observer_->OnHalfClose();
      return;
    }
    absl::StatusOr<ReceivedMessage> message = call_.core->AdmitMessage(
        std::move(packet.bytes), call_.caller_task, call_.checks_each_message);
    if (message.ok()) {
      observer_->OnMessage(*std::move(message));
    } else {
      Finish(message.status());
    }
  }

  void OnBroken(const std::string&) override {
    {
      absl::MutexLock lock(&mutex_);
      is_finished_ = true;
    }
    End(Cancelled());
  }

 private:
  static absl::Status Cancelled() {
    return absl::CancelledError(
        "the client cancelled the call or disconnected");
  }

  // The observer gets its last call on the thread that serves this stream.
  void EndSoon(const absl::Status& status) {
    SimulatedTransport& transport = call_.core->transport();
    transport.Post(transport.scheduler().current_host(), call_.call,
                   absl::ZeroDuration(),
                   [self = shared_from_this(), status] { self->End(status); });
  }
  void End(const absl::Status& status) {
    if (std::exchange(is_done_, true)) return;
    call_.core->transport().Remove(call_.connection, Side::kServer, call_.call);
    observer_->OnDone(status);
    observer_ = nullptr;
    call_.core->EndUse();
  }

  const ServerCall call_;
  // Used by the thread that serves this stream.
  std::shared_ptr<StreamObserver> observer_;
  bool is_done_ = false;

  absl::Mutex mutex_;
  bool is_finished_ ABSL_GUARDED_BY(mutex_) = false;
};

std::shared_ptr<PacketReceiver> ServerCore::Refuse(
    const std::shared_ptr<Connection>& connection, const Packet& open,
    const absl::Status& why, bool was_repeated) const {
  transport_->scheduler().Note(
      absl::StrCat("refused ", transport_->MachineOf(connection, Side::kClient),
                   ", ", open.method, ": ", why.message()));
  transport_->Send(connection, Side::kServer,
                   {.kind = Packet::Kind::kFinish,
                    .call = open.call,
                    .status = StatusToBytes(why),
                    .was_repeated = was_repeated});
  return nullptr;
}

std::shared_ptr<PacketReceiver> ServerCore::OnOpen(
    const std::shared_ptr<Connection>& connection, const Packet& open) {
  if (!BeginUse()) return nullptr;
  std::shared_ptr<PacketReceiver> receiver = Admit(connection, open);
  EndUse();
  return receiver;
}

std::shared_ptr<PacketReceiver> ServerCore::Admit(
    const std::shared_ptr<Connection>& connection, const Packet& open) {
  const Service::UnaryHandler* const unary = service_->FindUnary(open.method);
  const Service::StreamHandler* const stream =
      service_->FindStream(open.method);
  proto::RequestIdentity identity;
  if (!identity.ParseFromString(open.identity)) identity.Clear();
  absl::Status admitted = admission_check_->Check(identity);
  if (admitted.ok() && unary == nullptr && stream == nullptr) {
    admitted = absl::UnimplementedError(absl::StrCat(
        admission_check_->self().ToString(), " has no method ", open.method));
  }
  if (!admitted.ok()) return Refuse(connection, open, admitted, false);
  if (!seen_.Add(open.id)) {
    transport_->CountRepeatedCall();
    return Refuse(
        connection, open,
        absl::AlreadyExistsError(
            "the call has already arrived; each call is executed only once"),
        /*was_repeated=*/true);
  }
  absl::StatusOr<PeerCalls::Call> peer_call =
      calls_.Begin(transport_->MachineOf(connection, Side::kClient));
  if (!peer_call.ok()) {
    return Refuse(connection, open, peer_call.status(), false);
  }
  ServerCall call = {.core = shared_from_this(),
                     .connection = connection,
                     .call = open.call,
                     .caller_task = identity.caller_task(),
                     .checks_each_message = ChecksEachMessage(open.method),
                     .peer_call = *std::move(peer_call)};
  if (unary != nullptr) {
    return std::make_shared<UnaryServerCall>(std::move(call), unary);
  }
  auto opened = std::make_shared<ServerStream>(std::move(call));
  if (!opened->Open(*stream)) return nullptr;
  return opened;
}

class SimulatedServer final : public Server {
 public:
  SimulatedServer(std::shared_ptr<ServerCore> core, std::string address)
      : core_(std::move(core)), address_(std::move(address)) {}
  ~SimulatedServer() override { Shutdown(absl::ZeroDuration()); }

  std::string address() const override { return address_; }

  void Shutdown(absl::Duration grace) override {
    if (std::exchange(is_shut_down_, true)) return;
    core_->transport().StopListening(address_, core_.get());
    core_->AwaitUnused(grace);
    core_->Close();
    core_->transport().EndConnections(core_.get());
    if (!core_->AwaitUnused(kHandlerTimeout)) {
      core_->transport().scheduler().Note("a handler has not ended");
      std::abort();
    }
  }

 private:
  const std::shared_ptr<ServerCore> core_;
  const std::string address_;
  bool is_shut_down_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> StartSimulatedServer(
    SimulatedTransport* transport, const ServerOptions& options,
    const Service* service, AdmissionCheck* admission_check) {
  if (!absl::StrContains(options.address, ":")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", options.address, "\" is no address; expected host:port"));
  }
  auto core = std::make_shared<ServerCore>(transport, service, admission_check);
  if (!transport->Listen(options.address, core)) {
    return absl::UnavailableError(
        absl::StrCat(options.address, " is taken by process 1"));
  }
  return std::make_unique<SimulatedServer>(std::move(core), options.address);
}

}  // namespace muster::sim
