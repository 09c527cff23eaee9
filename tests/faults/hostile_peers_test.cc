// Unrelated processes connect to the ports of a running job and send invalid
// data: garbage, slow and silent connections, huge messages, many streams, and
// calls with random content. The job continues, its memory stays bounded, and
// refusals are logged.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/cluster/address.h"
#include "common/net/rpc/network.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"

namespace muster {
namespace {

using testing::HasSubstr;

constexpr TaskId kChief = ClusterUnderTest::kChief;
constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kPs0 = {TaskType::kPs, 0};

constexpr int64_t kMemoryGrowthBytesMax = int64_t{256} << 20;

// A connection on loopback that belongs to no task.
class RawPeer {
 public:
  explicit RawPeer(int port)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    EXPECT_EQ(connect(fd_, reinterpret_cast<const sockaddr*>(&address),
                      sizeof(address)),
              0);
  }
  ~RawPeer() {
    if (fd_ >= 0) close(fd_);
  }
  RawPeer(RawPeer&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  RawPeer& operator=(RawPeer&&) = delete;

  // Sends as much as possible. The server may have closed the connection.
  void Send(absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent =
          send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }

  // Returns true if the server sends `text` before it closes the connection.
  bool AwaitText(const std::string& text) {
    std::string received;
    char buffer[1 << 14];
    while (received.find(text) == std::string::npos) {
      pollfd readable = {fd_, POLLIN, 0};
      if (poll(&readable, 1, 60'000) != 1) return false;
      const ssize_t count = recv(fd_, buffer, sizeof(buffer), 0);
      if (count <= 0) return false;
      received.append(buffer, static_cast<size_t>(count));
    }
    return true;
  }

 private:
  int fd_;
};

// ---- Just enough of HTTP/2 (RFC 9113) to open gRPC calls.

std::string Frame(int type, int flags, uint32_t stream,
                  const std::string& payload) {
  std::string frame;
  for (const int shift : {16, 8, 0}) {
    frame.push_back(static_cast<char>(payload.size() >> shift));
  }
  frame.push_back(static_cast<char>(type));
  frame.push_back(static_cast<char>(flags));
  for (const int shift : {24, 16, 8, 0}) {
    frame.push_back(static_cast<char>(stream >> shift));
  }
  return frame + payload;
}

std::string Preface() {
  return absl::StrCat("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Frame(4, 0, 0, ""));
}

// Returns a literal header field without indexing and without Huffman codes.
std::string Header(absl::string_view name, absl::string_view value) {
  return absl::StrCat(std::string(1, '\0'),
                      std::string(1, static_cast<char>(name.size())), name,
                      std::string(1, static_cast<char>(value.size())), value);
}

std::string OpenCall(uint32_t stream, absl::string_view method) {
  constexpr int kEndHeaders = 4;
  return Frame(
      1, kEndHeaders, stream,
      absl::StrCat(Header(":method", "POST"), Header(":scheme", "http"),
                   Header(":path", method), Header(":authority", "localhost"),
                   Header("te", "trailers"),
                   Header("content-type", "application/grpc")));
}

// Returns the beginning of a message of `size_bytes`. The rest is never sent.
std::string BeginMessage(uint32_t stream, uint32_t size_bytes) {
  std::string prefix(1, '\0');
  for (const int shift : {24, 16, 8, 0}) {
    prefix.push_back(static_cast<char>(size_bytes >> shift));
  }
  return Frame(0, 0, stream, prefix);
}

std::string RandomBytes(RandomStream* random, size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random->Below(256));
  return bytes;
}

int64_t MemoryBytes(ProcessUnderTest& process) {
  std::ifstream status(absl::StrCat("/proc/", process.pid(), "/statm"));
  int64_t all_pages = 0;
  int64_t resident_pages = 0;
  status >> all_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

struct Target {
  std::string name;
  TaskId task;
  int ps_count;  // 0: synchronous workers.
  std::string method;
  std::string refused_method;  // Refused before a handler is called.
};

class HostilePeersTest : public testing::TestWithParam<Target> {
 protected:
  HostilePeersTest()
      : cluster_(*ClusterUnderTest::Create("hostile", 2, GetParam().ps_count)) {
  }

  ProcessUnderTest& leader() {
    return cluster_->process(GetParam().ps_count > 0 ? kChief : kWorker0);
  }
  ProcessUnderTest& target() { return cluster_->process(GetParam().task); }
  std::string address() {
    return *cluster_->cluster().Address(GetParam().task);
  }
  int port() { return ParseHostPort(address())->port; }

  // Starts training that does not end by itself.
  void StartTraining() {
    cluster_->set_epochs(100000);
    ASSERT_OK(cluster_->StartAll());
    AwaitEpochs(2);
    memory_before_ = MemoryBytes(target());
  }

  void AwaitEpochs(int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_OK(leader().AwaitLine("Epoch "));
    }
  }

  void ExpectTrainsOnInBoundedMemory() {
    AwaitEpochs(3);
    EXPECT_LT(MemoryBytes(target()) - memory_before_, kMemoryGrowthBytesMax);
    EXPECT_THAT(leader().output(), testing::Not(HasSubstr("is lost")));
  }

  // Sends calls with a valid identity and random content.
  void SendRandomCalls(const std::string& job_id) {
    ChannelOptions options;
    options.address = address();
    options.peer_task_type = std::string(TaskTypeName(GetParam().task.type));
    options.peer_task_index = GetParam().task.index;
    options.caller = {"chief", 0, 77};
    options.job_id = job_id;
    const auto channel = Network::Grpc()->Connect(options);
    for (const char* const method :
         {"/muster.ParameterServer/Create", "/muster.ParameterServer/Exchange",
          "/muster.ParameterServer/Freeze", "/muster.ParameterServer/Restore",
          "/muster.ParameterServer/RollBack", "/muster.ParameterServer/Save",
          "/muster.ParameterServer/SetOptimizer", "/muster.Task/End",
          "/muster.Task/Trace", "/muster.Worker/FetchResult",
          "/muster.PeerGroup/Identify"}) {
      for (int i = 0; i < 20; ++i) {
        // No valid message begins with this byte.
        const std::string body =
            absl::StrCat("\xff", RandomBytes(&random_, random_.Below(60)));
        const absl::Status status =
            channel
                ->CallAndWait(
                    method, {body, {}},
                    {.timeout = absl::Seconds(30), .wait_for_ready = true})
                .status();
        EXPECT_FALSE(status.ok()) << method;
        EXPECT_FALSE(absl::IsUnavailable(status)) << method << ": " << status;
        EXPECT_FALSE(absl::IsDeadlineExceeded(status)) << status;
      }
    }
  }

  std::vector<RawPeer> Connect(int count, const std::string& bytes) {
    std::vector<RawPeer> peers;
    for (int i = 0; i < count; ++i) {
      peers.emplace_back(port()).Send(bytes);
    }
    return peers;
  }

  const std::unique_ptr<ClusterUnderTest> cluster_;
  int64_t memory_before_ = 0;
  RandomStream random_{11};
};

TEST_P(HostilePeersTest, SilentAndSlowConnectionsDelayNothing) {
  StartTraining();
  const std::vector<RawPeer> silent = Connect(500, "");
  std::vector<RawPeer> slow = Connect(100, "");
  const std::string preface = Preface();
  for (const char byte : preface.substr(0, preface.size() - 1)) {
    for (RawPeer& peer : slow) peer.Send({&byte, 1});
  }
  ExpectTrainsOnInBoundedMemory();
}

TEST_P(HostilePeersTest, GarbageIsIgnored) {
  StartTraining();
  for (int i = 0; i < 200; ++i) {
    const std::string bytes = RandomBytes(&random_, 1 + random_.Below(5000));
    // Half of the garbage follows a valid preface and is parsed as frames.
    RawPeer(port()).Send(i % 2 == 0 ? bytes : Preface() + bytes);
  }
  ExpectTrainsOnInBoundedMemory();
}

TEST_P(HostilePeersTest, LargeMessagesTakeNoMemoryBeforeTheyArrive) {
  StartTraining();
  std::vector<RawPeer> peers;
  for (int i = 0; i < 50; ++i) {
    RawPeer& peer = peers.emplace_back(port());
    peer.Send(Preface());
    for (uint32_t stream = 1; stream < 20; stream += 2) {
      peer.Send(OpenCall(stream, GetParam().method) +
                BeginMessage(stream, 1 << 30));
    }
  }
  ExpectTrainsOnInBoundedMemory();
}

TEST_P(HostilePeersTest, RefusedCallsAreLoggedWithTheirMethod) {
  StartTraining();
  RawPeer peer(port());
  peer.Send(Preface());
  for (uint32_t stream = 1; stream < 2 * 3000; stream += 2) {
    peer.Send(OpenCall(stream, GetParam().refused_method));
  }
  EXPECT_TRUE(peer.AwaitText("grpc-status"));
  ASSERT_OK_AND_ASSIGN(const std::string line,
                       target().AwaitLine("refused ipv4:127.0.0.1:"));
  EXPECT_THAT(line, HasSubstr(GetParam().refused_method));
  ExpectTrainsOnInBoundedMemory();
}

// Before the job begins any process may call; afterwards only its tasks.
TEST_P(HostilePeersTest, CallsWithRandomContentChangeNothing) {
  cluster_->set_epochs(100000);
  ASSERT_OK(cluster_->Start(GetParam().task));
  SendRandomCalls(/*job_id=*/"");
  StartTraining();
  SendRandomCalls(/*job_id=*/"");
  SendRandomCalls(/*job_id=*/"another");
  ExpectTrainsOnInBoundedMemory();
}

INSTANTIATE_TEST_SUITE_P(
    Targets, HostilePeersTest,
    testing::Values(Target{"ParameterServer", kPs0, 2,
                           "/muster.ParameterServer/Exchange",
                           "/muster.ParameterServer/Exchange"},
                    Target{"Worker", kWorker0, 2, "/muster.Worker/FetchResult",
                           "/muster.Worker/Unknown"},
                    Target{"SynchronousWorker", kWorker0, 0,
                           "/muster.PeerGroup/Identify",
                           "/muster.PeerGroup/Unknown"}),
    [](const testing::TestParamInfo<Target>& info) { return info.param.name; });

}  // namespace
}  // namespace muster
