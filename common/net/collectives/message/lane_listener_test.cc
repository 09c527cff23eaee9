#include "common/net/collectives/message/lane_listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/core/system/metrics.h"
#include "common/net/collectives/message/payload_sink.h"
#include "common/net/collectives/message/waker.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

absl::Time In(absl::Duration duration) {
  return Clock::Real()->Now() + duration;
}
constexpr absl::Duration kLong = absl::Seconds(30);

absl::StatusOr<std::unique_ptr<LaneListener>> Listen(absl::string_view kind) {
  if (kind == "unix") return LaneListener::ListenUnix();
  if (kind == "tls") {
    return LaneListener::ListenTcp("127.0.0.1", {.encrypts = true});
  }
  return LaneListener::ListenTcp(kind);
}

class LaneListenerTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { ASSERT_OK_AND_ASSIGN(listener_, Listen(GetParam())); }

  std::unique_ptr<LaneListener> listener_;
};

// Sends `text` in an abort, the only kind of frame that carries text.
void SendText(Lane& lane, const std::string& text) {
  OutgoingFrame frame;
  frame.header.kind = FrameKind::kAbort;
  frame.header.payload_bytes = text.size();
  frame.payload = reinterpret_cast<const uint8_t*>(text.data());
  ASSERT_THAT(lane.Send(frame), IsOkAndHolds(true));
}

std::string ReceiveText(Lane& lane) {
  const absl::Time deadline = In(kLong);
  TextSink sink;
  while (Clock::Real()->Now() < deadline) {
    const auto header = lane.NextFrame();
    if (!header.ok()) return header.status().ToString();
    if (*header == nullptr) continue;
    const auto is_received = lane.ReceivePayload(sink);
    if (!is_received.ok()) return is_received.status().ToString();
    if (*is_received) return sink.text();
  }
  return "no message was received";
}

TEST_P(LaneListenerTest, RanksThatShowTheTokenGetLanes) {
  std::vector<std::unique_ptr<Lane>> connected(3);
  std::vector<std::thread> threads;
  for (int rank = 1; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      auto lane = ConnectLane(listener_->address(), listener_->token(), rank, 7,
                              In(kLong));
      ASSERT_OK(lane);
      connected[rank] = *std::move(lane);
    });
  }
  auto accepted = listener_->Accept({1, 2}, 7, In(kLong));
  for (std::thread& thread : threads) thread.join();
  ASSERT_OK(accepted);
  LaneWaker waker;
  for (int rank = 1; rank < 3; ++rank) {
    Lane& near = *accepted->at(rank);
    EXPECT_TRUE(near.is_same_host());
    EXPECT_THAT(near.transport(), StartsWith("raw "));
    EXPECT_EQ(near.transport(), connected[rank]->transport());
    SendText(near, "to " + std::to_string(rank));
    EXPECT_EQ(ReceiveText(*connected[rank]), "to " + std::to_string(rank));
    SendText(*connected[rank], "from " + std::to_string(rank));
    EXPECT_EQ(ReceiveText(near), "from " + std::to_string(rank));
  }
}

TEST_P(LaneListenerTest, RanksWithAnotherTokenAreRefusedWithAReason) {
  std::thread strangers([&] {
    EXPECT_THAT(ConnectLane(listener_->address(), std::string(32, '0'), 1, 7,
                            In(kLong)),
                StatusIs(absl::StatusCode::kPermissionDenied,
                         HasSubstr(listener_->address())));
    EXPECT_THAT(ConnectLane(listener_->address(), "", 1, 7, In(kLong)),
                StatusIs(absl::StatusCode::kPermissionDenied));
    EXPECT_THAT(
        ConnectLane(listener_->address(), listener_->token(), 1, 6, In(kLong)),
        StatusIs(absl::StatusCode::kFailedPrecondition,
                 HasSubstr("generation 7")));
    EXPECT_THAT(
        ConnectLane(listener_->address(), listener_->token(), 2, 7, In(kLong)),
        StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("rank 2")));
    EXPECT_OK(
        ConnectLane(listener_->address(), listener_->token(), 1, 7, In(kLong)));
  });
  EXPECT_OK(listener_->Accept({1}, 7, In(kLong)));
  strangers.join();
}

TEST_P(LaneListenerTest, RanksThatDoNotConnectAreNamed) {
  EXPECT_THAT(
      listener_->Accept({4, 5}, 7, In(absl::Milliseconds(20))),
      StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("ranks 4, 5")));
}

TEST_P(LaneListenerTest, AListenerThatDoesNotAnswerIsGivenUp) {
  EXPECT_THAT(ConnectLane(listener_->address(), listener_->token(), 1, 7,
                          In(absl::Milliseconds(20))),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_P(LaneListenerTest, TheListenerIsClosedAfterwards) {
  const std::string address = listener_->address();
  listener_ = nullptr;
  EXPECT_THAT(ConnectLane(address, std::string(32, '0'), 1, 7, In(kLong)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(address)));
}

INSTANTIATE_TEST_SUITE_P(All, LaneListenerTest,
                         testing::Values("127.0.0.1", "localhost", "tls",
                                         "unix"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '.');
                           return name;
                         });

int PortOf(const LaneListener& listener) {
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(
      listener.address().substr(listener.address().rfind(':') + 1), &port));
  return port;
}

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

int ConnectToPort(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(port);
  EXPECT_EQ(
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
      0);
  return fd;
}

// Forwards one connection to a port and records all its bytes.
class WireTap {
 public:
  explicit WireTap(int target_port)
      : listening_fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = Loopback(0);
    socklen_t size_bytes = sizeof(address);
    EXPECT_EQ(
        bind(listening_fd_, reinterpret_cast<sockaddr*>(&address), size_bytes),
        0);
    EXPECT_EQ(listen(listening_fd_, 1), 0);
    getsockname(listening_fd_, reinterpret_cast<sockaddr*>(&address),
                &size_bytes);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([=, this] { Run(target_port); });
  }
  int port() const { return port_; }
  // Waits until both ends have closed the connection. Returns its bytes.
  const std::string& Recording() {
    thread_.join();
    return recording_;
  }

 private:
  void Run(int target_port) {
    const int client = accept(listening_fd_, nullptr, nullptr);
    const int server = ConnectToPort(target_port);
    pollfd entries[] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
    while (entries[0].fd >= 0 || entries[1].fd >= 0) {
      poll(entries, 2, -1);
      for (int i = 0; i < 2; ++i) {
        if (entries[i].revents == 0) continue;
        char bytes[4096];
        const int other = i == 0 ? server : client;
        const ssize_t count = recv(entries[i].fd, bytes, sizeof(bytes), 0);
        if (count <= 0) {
          shutdown(other, SHUT_WR);
          entries[i].fd = -1;
          continue;
        }
        recording_.append(bytes, count);
        send(other, bytes, count, MSG_NOSIGNAL);
      }
    }
    close(client);
    close(server);
    close(listening_fd_);
  }

  const int listening_fd_;
  int port_ = 0;
  std::string recording_;
  std::thread thread_;
};

// Sends `text` in both directions over a lane and returns the bytes on the
// wire.
std::string RecordText(const LaneListenerOptions& options,
                       const std::string& text) {
  auto listener = LaneListener::ListenTcp("127.0.0.1", options);
  EXPECT_OK(listener);
  WireTap tap(PortOf(**listener));
  std::thread rank_1([&] {
    auto lane = ConnectLane(absl::StrCat(options.encrypts ? "tls" : "tcp",
                                         ":127.0.0.1:", tap.port()),
                            (*listener)->token(), 1, 7, In(kLong));
    ASSERT_OK(lane);
    EXPECT_EQ(ReceiveText(**lane), text);
    SendText(**lane, text);
  });
  {
    auto lanes = (*listener)->Accept({1}, 7, In(kLong));
    EXPECT_OK(lanes);
    SendText(*lanes->at(1), text);
    EXPECT_EQ(ReceiveText(*lanes->at(1)), text);
  }
  rank_1.join();
  return tap.Recording();
}

TEST(LaneEncryptionTest, OnlyCiphertextCrossesTheWire) {
  const std::string text(2000, 't');
  const std::string plain = text.substr(0, 8);
  // A frame begins with MSL1, a hello with MSH1.
  EXPECT_THAT(RecordText({}, text),
              AllOf(HasSubstr(plain), HasSubstr("MSH1"), HasSubstr("MSL1")));
  const std::string encrypted = RecordText({.encrypts = true}, text);
  EXPECT_GT(encrypted.size(), 2 * text.size());
  EXPECT_THAT(encrypted, Not(AnyOf(HasSubstr(plain), HasSubstr("MSH1"),
                                   HasSubstr("MSL1"))));
}

TEST(LaneEncryptionTest, PlaintextConnectionsAreRefused) {
  ASSERT_OK_AND_ASSIGN(
      const auto listener,
      LaneListener::ListenTcp("127.0.0.1", {.encrypts = true}));
  const std::string port = absl::StrCat(PortOf(*listener));
  std::thread ranks([&] {
    EXPECT_THAT(ConnectLane("tcp:127.0.0.1:" + port, listener->token(), 1, 7,
                            In(kLong)),
                Not(IsOk()));
    EXPECT_OK(
        ConnectLane(listener->address(), listener->token(), 1, 7, In(kLong)));
  });
  EXPECT_OK(listener->Accept({1}, 7, In(kLong)));
  ranks.join();
}

TEST(LaneEncryptionTest, AListenerThatSpeaksPlaintextIsRefused) {
  ASSERT_OK_AND_ASSIGN(const auto listener,
                       LaneListener::ListenTcp("127.0.0.1"));
  const std::string port = absl::StrCat(PortOf(*listener));
  std::thread rank_1([&] {
    EXPECT_THAT(ConnectLane("tls:127.0.0.1:" + port, listener->token(), 1, 7,
                            In(kLong)),
                Not(IsOk()));
    EXPECT_OK(
        ConnectLane(listener->address(), listener->token(), 1, 7, In(kLong)));
  });
  EXPECT_OK(listener->Accept({1}, 7, In(kLong)));
  rank_1.join();
}

int64_t RefusedCount() {
  for (const MetricFamily& family : ReadMetrics()) {
    if (family.name != "muster_lane_connections_refused_total") continue;
    return static_cast<int64_t>(family.samples.at(0).value);
  }
  return 0;
}

TEST(LaneLimitsTest, SilentConnectionsDoNotBlockRanks) {
  ASSERT_OK_AND_ASSIGN(
      const auto listener,
      LaneListener::ListenTcp("127.0.0.1", {.encrypts = true}));
  const int64_t refused_before = RefusedCount();
  constexpr int kExcess = 20;
  std::vector<int> strangers;
  for (int i = 0; i < LaneListener::kUndecidedCountOfAddressMax + kExcess;
       ++i) {
    strangers.push_back(ConnectToPort(PortOf(*listener)));
  }
  absl::Status status;
  std::thread rank_1([&] {
    // This address has no free connection until the silent connections are
    // closed.
    EXPECT_THAT(
        ConnectLane(listener->address(), listener->token(), 1, 7, In(kLong)),
        StatusIs(absl::StatusCode::kUnavailable));
    EXPECT_GE(RefusedCount() - refused_before, kExcess + 1);
    for (const int fd : strangers) close(fd);
    do {
      status =
          ConnectLane(listener->address(), listener->token(), 1, 7, In(kLong))
              .status();
    } while (absl::IsUnavailable(status));
  });
  EXPECT_OK(listener->Accept({1}, 7, In(kLong)));
  rank_1.join();
  EXPECT_OK(status);
}

TEST(LaneAddressTest, APortThatIsTakenIsNamed) {
  ASSERT_OK_AND_ASSIGN(const auto listener,
                       LaneListener::ListenTcp("127.0.0.1"));
  const int port = PortOf(*listener);
  EXPECT_THAT(LaneListener::ListenTcp("127.0.0.1", {.port = port}),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr(absl::StrCat("127.0.0.1:", port))));
}

TEST(LaneAddressTest, InvalidAddressesAreRefused) {
  for (const char* address : {"", "tcp:", "10.0.0.1:80", "udp:x:1"}) {
    EXPECT_THAT(ConnectLane(address, "", 0, 1, In(kLong)),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << address;
  }
  EXPECT_THAT(
      LaneListener::ListenTcp("192.0.2.1"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("192.0.2.1")));
}

}  // namespace
}  // namespace muster
