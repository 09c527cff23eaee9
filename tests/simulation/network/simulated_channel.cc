#include "tests/simulation/network/simulated_channel.h"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/core/base/random.h"
#include "common/core/system/clock.h"
#include "common/net/rpc/peer.h"
#include "common/net/rpc/seen_calls.h"
#include "proto/rpc.pb.h"
#include "tests/simulation/network/encoded_message.h"

namespace muster::sim {
namespace {

// Back-off of connecting, as in grpc_channel.cc.
constexpr absl::Duration kReconnectDelayMin = absl::Milliseconds(20);
constexpr absl::Duration kReconnectDelayMax = absl::Milliseconds(100);
// The second copy of a call arrives up to this much later.
constexpr absl::Duration kDuplicateDelayMax = absl::Milliseconds(50);

// A call that waits for the connection of its channel.
class WaitingCall {
 public:
  virtual ~WaitingCall() = default;
  virtual bool waits_for_ready() const = 0;
  // Starts the call on a new connection. Returns false if that has ended.
  virtual bool Begin(const std::shared_ptr<Connection>& connection) = 0;
  // The peer cannot be reached. Called on the thread that serves the call.
  virtual void FailToConnect(const std::string& reason) = 0;
  virtual uint64_t call() const = 0;
};

// What all calls of a channel share.
class ChannelCore : public std::enable_shared_from_this<ChannelCore> {
 public:
  ChannelCore(SimulatedTransport* transport, const ChannelOptions& options,
              int duplicate_one_in)
      : transport_(transport),
        host_(transport->scheduler().current_host()),
        address_(options.address),
        keepalive_(options.keepalive),
        duplicate_one_in_(duplicate_one_in),
        peer_(options, /*has_tls=*/false),
        id_(RandomIdentity()) {}

  SimulatedTransport& transport() const { return *transport_; }
  HostId host() const { return host_; }
  Peer& peer() { return peer_; }
  bool IsDuplicated() const { return transport_->Chance(duplicate_one_in_); }

  CallId NextId() {
    absl::MutexLock lock(&mutex_);
    return {.channel = id_, .number = ++last_number_};
  }

  // Starts `call` once there is a connection.
  void Start(const std::shared_ptr<WaitingCall>& call) {
    absl::MutexLock lock(&mutex_);
    if (connection_ != nullptr && call->Begin(connection_)) return;
    connection_ = nullptr;
    if (is_dialling_) {
      waiting_.push_back(call);
      return;
    }
    const absl::Time now = Clock::Real()->Now();
    if (now < next_dial_ && !call->waits_for_ready()) {
      Fail(call, last_error_);
      return;
    }
    waiting_.push_back(call);
    DialAfter(next_dial_ - now);
  }

 private:
  void DialAfter(absl::Duration delay) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    is_dialling_ = true;
    transport_->Post(host_, 0, std::max(delay, absl::ZeroDuration()),
                     [self = shared_from_this()] { self->Dial(); });
  }

  void Dial() {
    transport_->Dial(
        host_, address_, keepalive_,
        [self = shared_from_this()](std::shared_ptr<Connection> connection,
                                    const std::string& reason) {
          self->OnDialled(std::move(connection), reason);
        });
  }

  void OnDialled(std::shared_ptr<Connection> connection,
                 const std::string& reason) {
    absl::MutexLock lock(&mutex_);
    is_dialling_ = false;
    std::vector<std::shared_ptr<WaitingCall>> again;
    for (const auto& call : std::exchange(waiting_, {})) {
      if (connection != nullptr && call->Begin(connection)) continue;
      if (call->waits_for_ready()) {
        again.push_back(call);
      } else {
        Fail(call, connection == nullptr ? reason : "socket closed");
      }
    }
    connection_ = std::move(connection);
    if (connection_ == nullptr) {
      last_error_ = reason;
      next_dial_ = Clock::Real()->Now() + kReconnectDelayMin +
                   absl::Milliseconds(transport_->scheduler().Below(
                       static_cast<uint64_t>(absl::ToInt64Milliseconds(
                           kReconnectDelayMax - kReconnectDelayMin))));
    }
    if (again.empty()) return;
    waiting_ = std::move(again);
    DialAfter(next_dial_ - Clock::Real()->Now());
  }

  void Fail(const std::shared_ptr<WaitingCall>& call,
            const std::string& reason) {
    transport_->Post(host_, call->call(), absl::ZeroDuration(),
                     [call, reason] { call->FailToConnect(reason); });
  }

  SimulatedTransport* const transport_;
  const HostId host_;
  const std::string address_;
  const absl::Duration keepalive_;
  const int duplicate_one_in_;
  Peer peer_;
  const uint64_t id_;

  absl::Mutex mutex_;
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<Connection> connection_ ABSL_GUARDED_BY(mutex_);
  bool is_dialling_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time next_dial_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::string last_error_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<WaitingCall>> waiting_ ABSL_GUARDED_BY(mutex_);
};

// One request and its response. Its members are used by the thread that serves
// the call, but for Begin().
class UnaryCall final : public WaitingCall,
                        public PacketReceiver,
                        public std::enable_shared_from_this<UnaryCall> {
 public:
  UnaryCall(std::shared_ptr<ChannelCore> core, absl::string_view method,
            const CallOptions& options, Channel::Done done)
      : core_(std::move(core)),
        method_(method),
        wait_for_ready_(options.wait_for_ready),
        start_(Clock::Real()->Now()),
        deadline_(start_ + options.timeout),
        call_(core_->transport().NextCall()),
        id_(core_->NextId()),
        done_(std::move(done)) {}

  void Start(const Message& request) {
    const proto::RequestIdentity identity = core_->peer().SignRequest();
    identity_ = identity.SerializeAsString();
    request_ = ToBytes(identity, request);
    StartTimer();
    core_->Start(shared_from_this());
  }

  bool waits_for_ready() const override { return wait_for_ready_; }
  uint64_t call() const override { return call_; }

  bool Begin(const std::shared_ptr<Connection>& connection) override {
    SimulatedTransport& transport = core_->transport();
    if (!transport.Add(connection, Side::kClient, call_, shared_from_this())) {
      return false;
    }
    connection_ = connection;
    SendRequest(call_);
    if (core_->IsDuplicated()) {
      transport.Add(connection, Side::kClient, call_ + 1, shared_from_this());
      transport.Post(
          core_->host(), call_,
          absl::Microseconds(transport.scheduler().Below(static_cast<uint64_t>(
              absl::ToInt64Microseconds(kDuplicateDelayMax)))),
          [self = shared_from_this()] { self->SendRequest(self->call_ + 1); });
    }
    return true;
  }

  void FailToConnect(const std::string& reason) override {
    End(absl::UnavailableError(reason));
  }
  void OnBroken(const std::string& reason) override {
    End(absl::UnavailableError(reason));
  }

  void OnPacket(Packet packet) override {
    if (packet.kind != Packet::Kind::kFinish || is_done_) return;
    const absl::Status status = StatusFromBytes(packet.status);
    if (!status.ok() && packet.was_repeated) {
      // As in grpc_channel.cc: the outcome of the first copy is unknown.
      SendAgain();
      return;
    }
    if (!status.ok()) {
      End(status);
      return;
    }
    const size_t split =
        core_->transport().scheduler().Below(packet.bytes.size() + 1);
    End(FromBytes(std::move(packet.bytes), split));
  }

 private:
  void StartTimer() {
    constexpr absl::Duration kLongest = absl::Hours(24 * 365);
    core_->transport().Post(
        core_->host(), call_,
        std::min(deadline_ - Clock::Real()->Now(), kLongest),
        [self = shared_from_this()] { self->OnDeadline(); });
  }

  void SendRequest(uint64_t call) {
    SimulatedTransport& transport = core_->transport();
    transport.Send(connection_, Side::kClient,
                   {.kind = Packet::Kind::kOpen,
                    .call = call,
                    .method = method_,
                    .identity = identity_,
                    .id = id_});
    transport.Send(
        connection_, Side::kClient,
        {.kind = Packet::Kind::kMessage, .call = call, .bytes = request_});
  }

  void SendAgain() {
    Leave();
    const auto again = std::make_shared<UnaryCall>(
        core_, method_,
        CallOptions{.timeout = deadline_ - Clock::Real()->Now(),
                    .wait_for_ready = wait_for_ready_},
        std::move(done_));
    again->identity_ = identity_;
    again->request_ = request_;
    again->StartTimer();
    core_->Start(again);
  }

  void OnDeadline() {
    if (is_done_) return;
    if (connection_ != nullptr) {
      core_->transport().Send(connection_, Side::kClient,
                              {.kind = Packet::Kind::kCancel, .call = call_});
    }
    End(absl::DeadlineExceededError("Deadline Exceeded"));
  }

  // Ends the call without a response.
  void Leave() {
    is_done_ = true;
    if (connection_ == nullptr) return;
    core_->transport().Remove(connection_, Side::kClient, call_);
    core_->transport().Remove(connection_, Side::kClient, call_ + 1);
  }

  void End(absl::StatusOr<ReceivedMessage> response) {
    if (is_done_) return;
    Leave();
    if (!response.ok()) {
      response = core_->peer().AddContext(response.status(), method_,
                                          Clock::Real()->Now() - start_);
    }
    std::exchange(done_, nullptr)(std::move(response));
  }

  const std::shared_ptr<ChannelCore> core_;
  const std::string method_;
  const bool wait_for_ready_;
  const absl::Time start_;
  const absl::Time deadline_;
  const uint64_t call_;
  const CallId id_;
  Channel::Done done_;
  std::string identity_;
  std::string request_;
  std::shared_ptr<Connection> connection_;
  bool is_done_ = false;
};

class ClientStream final : public Stream,
                           public WaitingCall,
                           public PacketReceiver,
                           public std::enable_shared_from_this<ClientStream> {
 public:
  ClientStream(std::shared_ptr<ChannelCore> core, absl::string_view method,
               std::shared_ptr<StreamObserver> observer)
      : core_(std::move(core)),
        method_(method),
        start_(Clock::Real()->Now()),
        call_(core_->transport().NextCall()),
        observer_(std::move(observer)) {
    const proto::RequestIdentity identity = core_->peer().SignRequest();
    open_ = {.kind = Packet::Kind::kOpen,
             .call = call_,
             .method = method_,
             .identity = identity.SerializeAsString(),
             .id = core_->NextId()};
  }

  void Start() { core_->Start(shared_from_this()); }

  absl::Status Send(const Message& message) override {
    std::string bytes = ToBytes(core_->peer().SignRequest(), message);
    absl::MutexLock lock(&mutex_);
    if (is_over_ || is_half_closed_) {
      return absl::UnavailableError(
          absl::StrCat("the stream to ", core_->peer().name(), " has ended"));
    }
    const size_t queued_count =
        connection_ == nullptr
            ? queue_.size()
            : core_->transport().InFlightCount(connection_, Side::kClient);
    if (queued_count >= kQueuedMessageCountMax) {
      return absl::ResourceExhaustedError(absl::StrCat(
          kQueuedMessageCountMax, " messages already wait to go to ",
          core_->peer().name()));
    }
    SendOrQueue({.kind = Packet::Kind::kMessage,
                 .call = call_,
                 .bytes = std::move(bytes)});
    return absl::OkStatus();
  }

  void Finish(absl::Status) override {
    absl::MutexLock lock(&mutex_);
    if (is_over_ || is_half_closed_) return;
    is_half_closed_ = true;
    SendOrQueue({.kind = Packet::Kind::kHalfClose, .call = call_});
  }

  void Cancel() override {
    {
      absl::MutexLock lock(&mutex_);
      if (is_over_) return;
      is_over_ = true;
      if (connection_ != nullptr) {
        core_->transport().Send(connection_, Side::kClient,
                                {.kind = Packet::Kind::kCancel, .call = call_});
      }
    }
    core_->transport().Post(core_->host(), call_, absl::ZeroDuration(),
                            [self = shared_from_this()] {
                              self->End(absl::CancelledError("CANCELLED"));
                            });
  }

  bool waits_for_ready() const override { return false; }
  uint64_t call() const override { return call_; }

  bool Begin(const std::shared_ptr<Connection>& connection) override {
    absl::MutexLock lock(&mutex_);
    if (is_over_) return true;  // Was cancelled.
    SimulatedTransport& transport = core_->transport();
    if (!transport.Add(connection, Side::kClient, call_, shared_from_this())) {
      return false;
    }
    connection_ = connection;
    transport.Send(connection_, Side::kClient, open_);
    for (Packet& packet : queue_) {
      transport.Send(connection_, Side::kClient, std::move(packet));
    }
    queue_.clear();
    return true;
  }

  void FailToConnect(const std::string& reason) override {
    End(absl::UnavailableError(reason));
  }
  void OnBroken(const std::string& reason) override {
    End(absl::UnavailableError(reason));
  }

  void OnPacket(Packet packet) override {
    if (is_done_) return;
    if (packet.kind == Packet::Kind::kFinish) {
      End(StatusFromBytes(packet.status));
      return;
    }
    const size_t split =
        core_->transport().scheduler().Below(packet.bytes.size() + 1);
    absl::StatusOr<ReceivedMessage> message =
        FromBytes(std::move(packet.bytes), split);
    if (message.ok()) {
      observer_->OnMessage(*std::move(message));
    } else {
      Cancel();
    }
  }

 private:
  void SendOrQueue(Packet packet) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (connection_ == nullptr) {
      queue_.push_back(std::move(packet));
    } else {
      core_->transport().Send(connection_, Side::kClient, std::move(packet));
    }
  }

  void End(const absl::Status& status) {
    if (std::exchange(is_done_, true)) return;
    std::shared_ptr<Connection> connection;
    {
      absl::MutexLock lock(&mutex_);
      is_over_ = true;
      connection = connection_;
      queue_.clear();
    }
    if (connection != nullptr) {
      core_->transport().Remove(connection, Side::kClient, call_);
    }
    observer_->OnDone(core_->peer().AddContext(status, method_,
                                               Clock::Real()->Now() - start_));
    observer_ = nullptr;
  }

  const std::shared_ptr<ChannelCore> core_;
  const std::string method_;
  const absl::Time start_;
  const uint64_t call_;
  Packet open_;
  // Used by the thread that serves this stream.
  std::shared_ptr<StreamObserver> observer_;
  bool is_done_ = false;

  absl::Mutex mutex_;
  std::shared_ptr<Connection> connection_ ABSL_GUARDED_BY(mutex_);
  std::deque<Packet> queue_ ABSL_GUARDED_BY(mutex_);
  bool is_half_closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
};

class SimulatedChannel final : public Channel {
 public:
  explicit SimulatedChannel(std::shared_ptr<ChannelCore> core)
      : core_(std::move(core)) {}

  std::string peer() const override { return core_->peer().name(); }
  void SetTargetIncarnation(uint64_t incarnation) override {
    core_->peer().SetTargetIncarnation(incarnation);
  }
  uint64_t target_incarnation() const override {
    return core_->peer().target_incarnation();
  }
  void SetJobId(absl::string_view job_id) override {
    core_->peer().SetJobId(job_id);
  }
  void StartCall(absl::string_view method, const Message& request,
                 const CallOptions& options, Done done) override {
    std::make_shared<UnaryCall>(core_, method, options, std::move(done))
        ->Start(request);
  }
  std::shared_ptr<Stream> OpenStream(
      absl::string_view method,
      std::shared_ptr<StreamObserver> observer) override {
    auto stream =
        std::make_shared<ClientStream>(core_, method, std::move(observer));
    stream->Start();
    return stream;
  }

 private:
  const std::shared_ptr<ChannelCore> core_;
};

}  // namespace

std::unique_ptr<Channel> MakeSimulatedChannel(SimulatedTransport* transport,
                                              const ChannelOptions& options,
                                              int duplicate_one_in) {
  return std::make_unique<SimulatedChannel>(
      std::make_shared<ChannelCore>(transport, options, duplicate_one_in));
}

}  // namespace muster::sim
