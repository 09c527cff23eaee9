// Synchronous workers on separate hosts, whose packet filters allow only the
// ports that a firewall would have to open. The test captures all packets
// between the hosts.
#include <arpa/inet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/rpc/certificate_authority.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"
#include "tests/cluster/process_under_test.h"
#include "tests/faults/network_namespaces.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};
constexpr int kTaskPort = 2222;
constexpr int kLanePort = 2223;

// Set by main().
absl::Status entered;
NetworkNamespaces* network = nullptr;

// True if the bytes contain the header of a lane's frame: "MSL1", four bytes,
// and two small 64-bit numbers, whose lower half comes first. "MSL1" alone does
// not suffice: some megabytes of ciphertext contain it by chance.
bool HasFrame(absl::string_view bytes) {
  constexpr absl::string_view kMagic = "MSL1";
  constexpr absl::string_view kUpperHalf("\0\0\0\0", 4);
  for (size_t at = bytes.find(kMagic); at != absl::string_view::npos;
       at = bytes.find(kMagic, at + 1)) {
    const absl::string_view header = bytes.substr(at);
    if (header.size() >= 24 && header.substr(12, 4) == kUpperHalf &&
        header.substr(20, 4) == kUpperHalf) {
      return true;
    }
  }
  return false;
}

// Looks for texts in the packets on the bridge between the hosts.
class Capture {
 public:
  Capture()
      : socket_(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL))),
        stop_(eventfd(0, EFD_CLOEXEC)) {
    // The buffer is as large as the system permits; packets may be missed
    // nevertheless.
    const int buffer_bytes = 64 << 20;
    setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &buffer_bytes,
               sizeof(buffer_bytes));
    sockaddr_ll address = {};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = static_cast<int>(if_nametoindex("port0"));
    EXPECT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&address),
                   sizeof(address)),
              0);
    thread_ = std::thread([this] { Run(); });
  }
  ~Capture() {
    if (thread_.joinable()) Stop();
    close(socket_);
    close(stop_);
  }

  void Stop() {
    eventfd_write(stop_, 1);
    thread_.join();
  }
  // Call after Stop().
  size_t byte_count() const { return byte_count_; }
  // True if a frame of a lane was captured.
  bool has_frames() const { return has_frames_; }

 private:
  void Run() {
    pollfd entries[] = {{socket_, POLLIN, 0}, {stop_, POLLIN, 0}};
    std::string packet(1 << 17, '\0');
    while (poll(entries, 2, -1) > 0 && entries[1].revents == 0) {
      const ssize_t count = recv(socket_, packet.data(), packet.size(), 0);
      if (count <= 0) continue;
      byte_count_ += count;
      const absl::string_view bytes(packet.data(), count);
      has_frames_ = has_frames_ || HasFrame(bytes);
    }
  }

  const int socket_;
  const int stop_;
  size_t byte_count_ = 0;
  bool has_frames_ = false;
  std::thread thread_;
};

class ClosedPortsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!entered.ok()) GTEST_SKIP() << entered;
    const std::string name =
        testing::UnitTest::GetInstance()->current_test_info()->name();
    ASSERT_OK_AND_ASSIGN(cluster_, ClusterUnderTest::Create(name, 2, 0));
    cluster_->set_epochs(5);
    std::vector<ClusterUnderTest::Host> hosts;
    for (int host = 0; host < network->host_count(); ++host) {
      std::vector<std::string> prefix = network->Prefix(host);
      // Tasks compare host names to decide which of them share memory, so each
      // host needs a name.
      for (const char* word :
           {"unshare", "--uts", "sh", "-c", "hostname $0 && exec \"$@\""}) {
        prefix.push_back(word);
      }
      prefix.push_back(absl::StrCat("host", host));
      hosts.push_back({absl::StrCat(network->address(host), ":", kTaskPort),
                       std::move(prefix)});
    }
    ASSERT_OK(cluster_->Place(hosts));
    folder_ = absl::StrCat(testing::TempDir(), "/", name, "_certificates");
    std::filesystem::create_directories(folder_);
    ASSERT_OK_AND_ASSIGN(authority_,
                         CertificateAuthority::Create(absl::Hours(1)));
  }

  absl::Status StartBoth(const std::vector<std::string>& flags) {
    for (const TaskId task : {kWorker1, kWorker0}) {
      RETURN_IF_ERROR(
          WriteTaskFiles(*authority_, {"job1", "worker", task.index}, folder_)
              .status());
      RETURN_IF_ERROR(cluster_->Start(task, flags).status());
    }
    return absl::OkStatus();
  }
  absl::Status StartBothWithTls(std::vector<std::string> flags) {
    flags.push_back(absl::StrCat("--tls_dir=", folder_));
    return StartBoth(flags);
  }
  std::string OutputAtTheEnd(TaskId task) {
    ProcessUnderTest& process = cluster_->process(task);
    const auto end = process.AwaitEnd();
    EXPECT_OK(end);
    EXPECT_EQ(end->ShellCode(), 0) << process.output();
    return process.output();
  }

  std::string folder_;
  std::unique_ptr<CertificateAuthority> authority_;
  std::unique_ptr<ClusterUnderTest> cluster_;
};

// Without encryption, the capture finds frames.
TEST_F(ClosedPortsTest, InsecureLanesAreSeenOnTheNetwork) {
  Capture capture;
  ASSERT_OK(StartBoth({"--insecure", absl::StrCat("--lane_port=", kLanePort)}));
  EXPECT_THAT(OutputAtTheEnd(kWorker0), HasSubstr("RING over raw sockets"));
  OutputAtTheEnd(kWorker1);
  capture.Stop();
  EXPECT_TRUE(capture.has_frames());
}

TEST_F(ClosedPortsTest, LanesWithTlsUseTheNamedPortAndShowNothing) {
  Capture capture;
  ASSERT_OK(StartBothWithTls({absl::StrCat("--lane_port=", kLanePort)}));
  EXPECT_THAT(OutputAtTheEnd(kWorker0), HasSubstr("RING over raw sockets"));
  OutputAtTheEnd(kWorker1);
  capture.Stop();
  EXPECT_FALSE(capture.has_frames());
  EXPECT_GT(capture.byte_count(), 100'000);
}

TEST_F(ClosedPortsTest, WithoutALanePortTheGroupUsesGrpc) {
  ASSERT_OK(StartBothWithTls({}));
  EXPECT_THAT(OutputAtTheEnd(kWorker0),
              AllOf(HasSubstr("RING over gRPC"),
                    HasSubstr("raw sockets cannot be used")));
  OutputAtTheEnd(kWorker1);
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  muster::entered = muster::NetworkNamespaces::Enter();
  std::unique_ptr<muster::NetworkNamespaces> network;
  if (muster::entered.ok()) {
    auto created = muster::NetworkNamespaces::Create(2);
    absl::Status status = created.status();
    for (int host = 0; status.ok() && host < 2; ++host) {
      status =
          (*created)->OpenOnly(host, {muster::kTaskPort, muster::kLanePort});
    }
    if (!status.ok()) {
      std::cerr << status << "\n";
      return 1;
    }
    network = *std::move(created);
    muster::network = network.get();
  }
  return RUN_ALL_TESTS();
}
