// Tasks on one host: once TLS has authenticated them, their calls go over Unix
// sockets. A proxy in front of the server's port counts the bytes that still go
// over TCP.
#include "common/net/rpc/local_connections.h"

#include <arpa/inet.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/file_descriptor.h"
#include "common/core/system/testing/await_true.h"
#include "common/net/rpc/certificate_authority.h"
#include "common/net/rpc/grpc_convert.h"
#include "common/net/rpc/local_handshake.h"
#include "common/net/rpc/tls_network.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/local_connection.pb.h"
#include "proto/rpc.pb.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr absl::string_view kForWorkers = "/muster.ParameterServer/Exchange";
constexpr absl::string_view kForTheChief = "/muster.ParameterServer/Save";
constexpr absl::string_view kStreamMethod = "/muster.PeerGroup/Converse";
constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr CallOptions kPatient = {.timeout = kPatience};
constexpr size_t kLargeBytes = 1 << 20;

// Forwards bytes between its own port and another one, and counts them.
class CountingProxy {
 public:
  explicit CountingProxy(const std::string& target)
      : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    MUSTER_CHECK(
        absl::SimpleAtoi(target.substr(target.rfind(':') + 1), &target_port_));
    sockaddr_in address = LoopbackPort(0);
    MUSTER_CHECK(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address),
                      sizeof(address)) == 0);
    MUSTER_CHECK(listen(listener_.get(), 16) == 0);
    socklen_t size_bytes = sizeof(address);
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address),
                &size_bytes);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { Accept(); });
  }
  ~CountingProxy() {
    shutdown(listener_.get(), SHUT_RDWR);
    acceptor_.join();
    for (std::thread& passer : passers_) passer.join();
  }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  size_t byte_count() const { return byte_count_; }
  // Sets how long a new connection waits before its first byte is forwarded.
  void set_opening_delay(absl::Duration delay) {
    opening_delay_milliseconds_ =
        static_cast<int>(absl::ToInt64Milliseconds(delay));
  }

 private:
  static sockaddr_in LoopbackPort(int port) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    return address;
  }

  void Accept() {
    while (true) {
      FileDescriptor from(
          accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!from.is_open()) return;
      poll(nullptr, 0, opening_delay_milliseconds_);
      FileDescriptor to(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const sockaddr_in address = LoopbackPort(target_port_);
      if (connect(to.get(), reinterpret_cast<const sockaddr*>(&address),
                  sizeof(address)) != 0) {
        continue;
      }
      passers_.emplace_back([this, from = std::move(from), to = std::move(to)] {
        Pass(from.get(), to.get());
      });
    }
  }

  // Forwards bytes in both directions until one of the sockets is closed.
  void Pass(int one, int other) {
    const int ends[] = {one, other};
    std::vector<char> buffer(1 << 16);
    while (true) {
      pollfd polled[] = {{one, POLLIN, 0}, {other, POLLIN, 0}};
      poll(polled, 2, -1);
      for (int i = 0; i < 2; ++i) {
        if (polled[i].revents == 0) continue;
        const ssize_t count = recv(ends[i], buffer.data(), buffer.size(), 0);
        if (count <= 0) return;
        byte_count_ += count;
        send(ends[1 - i], buffer.data(), count, MSG_NOSIGNAL);
      }
    }
  }

  const FileDescriptor listener_;
  int target_port_ = 0;
  int port_ = 0;
  std::atomic<size_t> byte_count_{0};
  std::atomic<int> opening_delay_milliseconds_{0};
  std::vector<std::thread> passers_;  // Used by `acceptor_` until it has ended.
  std::thread acceptor_;
};

// Sends every message back.
class EchoObserver final : public StreamObserver {
 public:
  explicit EchoObserver(std::shared_ptr<Stream> stream)
      : stream_(std::move(stream)) {}
  void OnMessage(ReceivedMessage message) override {
    stream_->Send(Message{std::string(message.body()), {}}).IgnoreError();
  }
  void OnHalfClose() override { stream_->Finish(absl::OkStatus()); }
  void OnDone(const absl::Status&) override {}

 private:
  const std::shared_ptr<Stream> stream_;
};

// Counts the bytes that a stream delivers.
class Recorder final : public StreamObserver {
 public:
  void OnMessage(ReceivedMessage message) override {
    absl::MutexLock lock(&mutex_);
    byte_count_ += message.body().size();
  }
  void OnDone(const absl::Status& status) override {
    absl::MutexLock lock(&mutex_);
    status_ = status;
    is_done_ = true;
  }
  bool AwaitBytes(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto have_come = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return byte_count_ >= count || is_done_;
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&have_come), kPatience) &&
           byte_count_ >= count;
  }
  absl::Status AwaitEnd() {
    absl::MutexLock lock(&mutex_);
    if (!mutex_.AwaitWithTimeout(absl::Condition(&is_done_), kPatience)) {
      return absl::DeadlineExceededError("the stream did not end");
    }
    return status_;
  }

 private:
  absl::Mutex mutex_;
  size_t byte_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_done_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

class LocalConnectionsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = absl::StrCat(
        testing::TempDir(), "/",
        testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    ASSERT_OK_AND_ASSIGN(authority_,
                         CertificateAuthority::Create(absl::Hours(1)));
    for (const absl::string_view method : {kForWorkers, kForTheChief}) {
      service_.AddUnary(
          method, [](ReceivedMessage message, Responder responder) {
            responder.Respond(Message{std::string(message.body()), {}});
          });
    }
    service_.AddStream(kStreamMethod, [](std::shared_ptr<Stream> stream) {
      return std::make_shared<EchoObserver>(std::move(stream));
    });
    StartServer(/*with_local_connections=*/true);
    proxy_ = std::make_unique<CountingProxy>(server_->address());
  }

  void StartServer(bool with_local_connections,
                   const std::string& address = "127.0.0.1:0") {
    server_ = nullptr;
    ASSERT_OK_AND_ASSIGN(server_network_,
                         NetworkOf(kPs, with_local_connections));
    ASSERT_OK_AND_ASSIGN(
        server_, server_network_->Listen({.address = address}, &service_,
                                         &admission_check_));
  }
  absl::StatusOr<std::unique_ptr<TlsContext>> TlsOf(const SpiffeId& task) {
    ASSIGN_OR_RETURN(const TlsFiles files,
                     WriteTaskFiles(*authority_, task, folder_));
    return TlsContext::Load(files);
  }
  absl::StatusOr<std::unique_ptr<Network>> NetworkOf(
      const SpiffeId& task, bool with_local_connections) {
    ASSIGN_OR_RETURN(auto tls, TlsOf(task));
    return MakeTlsNetwork(std::move(tls),
                          {.local_connections = with_local_connections});
  }
  // Returns a channel through the proxy.
  std::unique_ptr<Channel> Connect(bool with_local_connections = true,
                                   const SpiffeId& caller = kWorker) {
    auto network = NetworkOf(caller, with_local_connections);
    EXPECT_OK(network.status());
    networks_.push_back(*std::move(network));
    return networks_.back()->Connect(
        {.address = proxy_->address(),
         .peer_task_type = kPs.role,
         .peer_task_index = kPs.index,
         .caller = {caller.role, caller.index, 5}});
  }
  // Sends kLargeBytes to the server and back. Returns the number of bytes that
  // went through the proxy.
  size_t ProxiedBytesOfACall(Channel* channel) {
    const size_t before = proxy_->byte_count();
    EXPECT_OK(channel->CallAndWait(
        kForWorkers, {std::string(kLargeBytes, 'x'), {}}, kPatient));
    return proxy_->byte_count() - before;
  }
  // Makes calls until one goes over a local connection. The first call starts
  // to open that connection, and goes over TCP itself.
  void AwaitLocalConnection(Channel* channel) {
    const absl::Time deadline = absl::Now() + kPatience;
    while (ProxiedBytesOfACall(channel) >= kLargeBytes) {
      ASSERT_LT(absl::Now(), deadline);
    }
  }

  // Opens a local connection as `caller`, and sets `secret` to the secret of
  // that task.
  std::unique_ptr<grpc::GenericStub> OpenByHand(const SpiffeId& caller,
                                                std::string* secret) {
    const auto channel = Connect(/*with_local_connections=*/false, caller);
    auto offer = LocalOffer::Make();
    EXPECT_OK(offer.status());
    const auto response = channel->Call<proto::OpenLocalConnectionResponse>(
        kOpenLocalConnectionMethod, offer->request(), kPatient);
    EXPECT_OK(response.status());
    if (!response.ok()) return nullptr;
    *secret = response->secret();
    auto sockets = offer->Take();
    EXPECT_OK(sockets.status());
    tethers_.push_back(std::move(sockets->tether));
    return std::make_unique<grpc::GenericStub>(
        grpc::CreateInsecureChannelFromFd("by hand", sockets->calls.Release()));
  }
  // Makes a call that claims to be from `caller` and carries `secret`, if any.
  grpc::StatusCode CallByHand(grpc::GenericStub* stub, const SpiffeId& caller,
                              const std::string& secret,
                              absl::string_view method = kForWorkers) {
    proto::RequestIdentity identity;
    identity.set_caller_task(caller.TaskName());
    const std::vector<MessageSlice> slices = EncodeMessage(identity, {"x", {}});
    std::vector<grpc::Slice> copies;
    for (const MessageSlice& slice : slices) {
      copies.emplace_back(slice.data, slice.size_bytes);
    }
    const grpc::ByteBuffer request(copies.data(), copies.size());
    grpc::ClientContext context;
    AddIdentity(identity, &context);
    AddCallId({.channel = 1, .number = ++call_number_}, &context);
    if (!secret.empty()) AddLocalSecret(secret, &context);
    context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    grpc::ByteBuffer response;
    grpc::Status status;
    absl::Notification is_done;
    stub->UnaryCall(&context, std::string(method), grpc::StubOptions(),
                    &request, &response, [&](grpc::Status given) {
                      status = std::move(given);
                      is_done.Notify();
                    });
    EXPECT_TRUE(is_done.WaitForNotificationWithTimeout(kTestWaitMax));
    return status.error_code();
  }

  inline static const SpiffeId kPs = {"job1", "ps", 0};
  inline static const SpiffeId kWorker = {"job1", "worker", 1};
  inline static const SpiffeId kChief = {"job1", "chief", 0};

  std::string folder_;
  std::unique_ptr<CertificateAuthority> authority_;
  Service service_;
  AdmissionCheck admission_check_{{"ps", 0, 77}};
  std::unique_ptr<Network> server_network_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<CountingProxy> proxy_;
  std::vector<std::unique_ptr<Network>> networks_;
  std::vector<FileDescriptor> tethers_;
  uint64_t call_number_ = 0;
};

// Handshakes are this slow over wide-area networks, and on machines with thirty
// processes for each core.
TEST_F(LocalConnectionsTest, AHandshakeMayTakeLongerThanAttemptsAreApart) {
  proxy_->set_opening_delay(absl::Milliseconds(300));
  const auto channel = Connect(/*with_local_connections=*/false);
  EXPECT_GE(ProxiedBytesOfACall(channel.get()), kLargeBytes);
}

TEST_F(LocalConnectionsTest, CallsUseTheUnixSocket) {
  const auto channel = Connect();
  ASSERT_NO_FATAL_FAILURE(AwaitLocalConnection(channel.get()));
  EXPECT_LT(ProxiedBytesOfACall(channel.get()), kLargeBytes);
  EXPECT_THAT(channel->CallAndWait(kForTheChief, {"x", {}}, kPatient).status(),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("worker 1 may not call")));
}

TEST_F(LocalConnectionsTest, StreamWaitsForTheUnixSocket) {
  const auto channel = Connect();
  const auto recorder = std::make_shared<Recorder>();
  const auto stream = channel->OpenStream(kStreamMethod, recorder);
  ASSERT_OK(stream->Send({std::string(kLargeBytes, 'x'), {}}));
  ASSERT_TRUE(recorder->AwaitBytes(kLargeBytes));
  EXPECT_LT(proxy_->byte_count(), kLargeBytes);
  stream->Finish(absl::OkStatus());
  EXPECT_OK(recorder->AwaitEnd());
}

TEST_F(LocalConnectionsTest, StreamCancelledWhileItWaitsEnds) {
  const auto channel = Connect();
  const auto recorder = std::make_shared<Recorder>();
  channel->OpenStream(kStreamMethod, recorder)->Cancel();
  EXPECT_THAT(recorder->AwaitEnd(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(LocalConnectionsTest, EitherEndCanRequireEncryption) {
  const auto channel = Connect(/*with_local_connections=*/false);
  for (int i = 0; i < 3; ++i) {
    EXPECT_GE(ProxiedBytesOfACall(channel.get()), 2 * kLargeBytes);
  }
  ASSERT_NO_FATAL_FAILURE(StartServer(/*with_local_connections=*/false));
  proxy_ = std::make_unique<CountingProxy>(server_->address());
  const auto other = Connect();
  for (int i = 0; i < 3; ++i) {
    EXPECT_GE(ProxiedBytesOfACall(other.get()), 2 * kLargeBytes);
  }
  const auto recorder = std::make_shared<Recorder>();
  const auto stream = other->OpenStream(kStreamMethod, recorder);
  ASSERT_OK(stream->Send({"x", {}}));
  EXPECT_TRUE(recorder->AwaitBytes(1));
  stream->Cancel();
  EXPECT_FALSE(recorder->AwaitEnd().ok());
}

TEST_F(LocalConnectionsTest, ReopensAfterTheServerRestarts) {
  const auto channel = Connect();
  ASSERT_NO_FATAL_FAILURE(AwaitLocalConnection(channel.get()));
  const std::string address = server_->address();
  server_ = nullptr;
  EXPECT_THAT(channel->CallAndWait(kForWorkers, {"x", {}}, kPatient).status(),
              StatusIs(absl::StatusCode::kUnavailable));
  ASSERT_NO_FATAL_FAILURE(
      StartServer(/*with_local_connections=*/true, address));
  EXPECT_OK(channel->CallAndWait(
      kForWorkers, {"x", {}}, {.timeout = kPatience, .wait_for_ready = true}));
  ASSERT_NO_FATAL_FAILURE(AwaitLocalConnection(channel.get()));
}

TEST_F(LocalConnectionsTest, RefusesCallsWithoutTheirTasksSecret) {
  std::string secret;
  const auto stub = OpenByHand(kWorker, &secret);
  ASSERT_NE(stub, nullptr);
  EXPECT_EQ(CallByHand(stub.get(), kWorker, secret), grpc::StatusCode::OK);
  EXPECT_EQ(CallByHand(stub.get(), kWorker, secret, kForTheChief),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(CallByHand(stub.get(), kWorker, ""),
            grpc::StatusCode::UNAUTHENTICATED);
  std::string other = secret;
  other.front() ^= 1;
  EXPECT_EQ(CallByHand(stub.get(), kWorker, other),
            grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(CallByHand(stub.get(), kChief, secret, kForTheChief),
            grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(CallByHand(stub.get(), kChief, "", kForTheChief),
            grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(LocalConnectionsTest, CertificateOverridesTheSecret) {
  std::string secret;
  ASSERT_NE(OpenByHand(kWorker, &secret), nullptr);
  ASSERT_OK_AND_ASSIGN(const auto tls, TlsOf(kChief));
  grpc::GenericStub stub(grpc::CreateChannel(
      server_->address(), tls->ChannelCredentials(kPs.role, kPs.index)));
  EXPECT_EQ(CallByHand(&stub, kChief, ""), grpc::StatusCode::OK);
  EXPECT_EQ(CallByHand(&stub, kWorker, secret),
            grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(LocalConnectionsTest, EachTaskHasItsOwnSecret) {
  std::string of_the_worker, again, of_the_chief;
  const auto worker = OpenByHand(kWorker, &of_the_worker);
  const auto chief = OpenByHand(kChief, &of_the_chief);
  ASSERT_NE(OpenByHand(kWorker, &again), nullptr);
  EXPECT_EQ(of_the_worker, again);
  EXPECT_NE(of_the_worker, of_the_chief);
  EXPECT_EQ(CallByHand(chief.get(), kChief, of_the_chief, kForTheChief),
            grpc::StatusCode::OK);
  EXPECT_EQ(CallByHand(worker.get(), kWorker, of_the_chief),
            grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(LocalConnectionsTest, OpensNoneWhileTheServerDoesNotRun) {
  LocalConnections connections(kPs.job, /*is_enabled=*/true);
  ASSERT_OK_AND_ASSIGN(const LocalOffer offer, LocalOffer::Make());
  proto::RequestIdentity identity;
  identity.set_caller_task(kWorker.TaskName());
  ASSERT_OK_AND_ASSIGN(
      const ReceivedMessage request,
      ReceivedMessage::Parse(
          EncodeMessage(identity, {offer.request().SerializeAsString(), {}})));
  EXPECT_THAT(connections.Open(request),
              StatusIs(absl::StatusCode::kUnavailable));
  LocalConnections disabled(kPs.job, /*is_enabled=*/false);
  EXPECT_THAT(disabled.Open(request),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace muster
