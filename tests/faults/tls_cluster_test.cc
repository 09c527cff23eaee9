// Real processes that communicate over TLS: training with parameter servers and
// in sync, certificates that are replaced meanwhile, and connections that tasks
// refuse.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/cluster/address.h"
#include "common/net/rpc/certificate_authority.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"
#include "tests/cluster/faulty_link.h"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr TaskId kChief = ClusterUnderTest::kChief;
constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};
constexpr TaskId kPs0 = {TaskType::kPs, 0};
constexpr int kRestartMe = 138;

class TlsClusterTest : public testing::Test {
 protected:
  void CreateCluster(int worker_count, int ps_count) {
    const std::string name =
        testing::UnitTest::GetInstance()->current_test_info()->name();
    ASSERT_OK_AND_ASSIGN(
        cluster_, ClusterUnderTest::Create(name, worker_count, ps_count));
    folder_ = absl::StrCat(testing::TempDir(), "/", name, "_certificates");
    std::filesystem::create_directories(folder_);
    ASSERT_OK_AND_ASSIGN(authority_,
                         CertificateAuthority::Create(absl::Hours(1)));
  }

  absl::StatusOr<std::vector<std::string>> IssueFiles(
      TaskId task, const std::string& job = "job1") {
    ASSIGN_OR_RETURN(
        const TlsFiles files,
        WriteTaskFiles(*authority_,
                       {job, std::string(TaskTypeName(task.type)), task.index},
                       folder_));
    return std::vector<std::string>{
        absl::StrCat("--tls_cert=", files.certificate),
        absl::StrCat("--tls_key=", files.key),
        absl::StrCat("--tls_ca=", files.ca)};
  }
  absl::Status Start(TaskId task, const std::vector<std::string>& more = {}) {
    ASSIGN_OR_RETURN(std::vector<std::string> flags, IssueFiles(task));
    flags.insert(flags.end(), more.begin(), more.end());
    return cluster_->Start(task, flags).status();
  }
  absl::Status StartAll(const std::vector<std::string>& more = {}) {
    const std::vector<TaskId> tasks = cluster_->cluster().Members();
    for (auto task = tasks.rbegin(); task != tasks.rend(); ++task) {
      RETURN_IF_ERROR(Start(*task, more));
    }
    return absl::OkStatus();
  }
  ProcessUnderTest& process(TaskId task) { return cluster_->process(task); }
  void ExpectEndsWith(TaskId task, int exit_code) {
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end, process(task).AwaitEnd());
    EXPECT_EQ(end.ShellCode(), exit_code) << task << " wrote:\n"
                                          << process(task).output();
  }

  // For clusters with parameter servers.
  void ExpectTrainsOnAndEndsOnASignal() {
    for (int epoch = 0; epoch < 3; ++epoch) {
      ASSERT_OK(process(kChief).AwaitLine("Epoch "));
    }
    process(kChief).SendSignal(SIGTERM);
    for (const TaskId task : cluster_->cluster().Members()) {
      ExpectEndsWith(task, task == kChief ? 128 + SIGTERM : kRestartMe);
    }
  }

  // Kills a worker between two replacements.
  void TrainWhileCertificatesAreReplaced(std::vector<std::string> flags) {
    flags.push_back("--coordinator_timeout=60s");
    ASSERT_NO_FATAL_FAILURE(CreateCluster(2, 2));
    cluster_->set_epochs(100000);
    ASSERT_OK(StartAll(flags));
    ASSERT_OK(process(kChief).AwaitLine("Epoch 3/"));
    for (const TaskId task : cluster_->cluster().Members()) {
      ASSERT_OK(IssueFiles(task));
    }
    process(kWorker1).SendSignal(SIGKILL);
    ASSERT_OK(process(kChief).AwaitLine("is lost"));
    ASSERT_OK(Start(kWorker1, flags));
    ASSERT_OK(process(kChief).AwaitLine("has reconnected"));
    ASSERT_NO_FATAL_FAILURE(ExpectTrainsOnAndEndsOnASignal());
  }

  std::string folder_;
  std::unique_ptr<CertificateAuthority> authority_;
  std::unique_ptr<ClusterUnderTest> cluster_;
};

TEST_F(TlsClusterTest, ParameterServersTrainWhileCertificatesAreReplaced) {
  ASSERT_NO_FATAL_FAILURE(TrainWhileCertificatesAreReplaced({}));
}

TEST_F(TlsClusterTest, EncryptedServersTrainWhileCertificatesAreReplaced) {
  ASSERT_NO_FATAL_FAILURE(TrainWhileCertificatesAreReplaced(
      {"--nolocal_connections", "--noshared_memory"}));
}

// A handshake has two round trips, which take half a second together.
TEST_F(TlsClusterTest, HandshakesMayTakeLong) {
  ASSERT_NO_FATAL_FAILURE(CreateCluster(1, 1));
  ASSERT_OK_AND_ASSIGN(FaultyLink* const link, cluster_->Link(kPs0));
  link->Delay(absl::Milliseconds(80));
  ASSERT_OK(StartAll({"--noshared_memory"}));
  ASSERT_OK(process(kChief).AwaitLine("Epoch 1/"));
  link->Delay(absl::ZeroDuration());
  for (const TaskId task : cluster_->cluster().Members()) {
    ExpectEndsWith(task, 0);
  }
}

TEST_F(TlsClusterTest, SynchronousWorkersTrain) {
  ASSERT_NO_FATAL_FAILURE(CreateCluster(3, 0));
  ASSERT_OK(StartAll({"--noshared_memory"}));
  for (const TaskId task : cluster_->cluster().Members()) {
    ExpectEndsWith(task, 0);
  }
  // Gradients stay on the host. closed_ports_test has workers on several hosts.
  EXPECT_THAT(process(kWorker0).output(), HasSubstr("RING over raw sockets"));
}

class TlsEvaluationTest : public TlsClusterTest {
 protected:
  // Returns the number of bytes that the coordinator sends over gRPC, per byte
  // of the batches.
  absl::StatusOr<double> Evaluate(const std::vector<std::string>& flags) {
    cluster_->set_program("tests/faults/evaluating_program");
    RETURN_IF_ERROR(StartAll(flags));
    for (const TaskId task : cluster_->cluster().Members()) {
      ExpectEndsWith(task, 0);
    }
    ASSIGN_OR_RETURN(const std::string line,
                     process(kChief).AwaitLine("per byte of the batches: "));
    double share = 0;
    if (!absl::SimpleAtod(line.substr(line.rfind(' ') + 1), &share)) {
      return absl::InternalError(line);
    }
    return share;
  }
};

TEST_F(TlsEvaluationTest, WorkersOfThisHostReadBatchesInSharedMemory) {
  ASSERT_NO_FATAL_FAILURE(CreateCluster(2, 1));
  ASSERT_OK_AND_ASSIGN(const double share, Evaluate({}));
  EXPECT_LT(share, 0.05);
  EXPECT_THAT(process(kChief).output(),
              HasSubstr("tensors go through shared memory to worker 0"));
}

TEST_F(TlsEvaluationTest, WithoutSharedMemoryBatchesGoOverGrpc) {
  ASSERT_NO_FATAL_FAILURE(CreateCluster(2, 1));
  ASSERT_OK_AND_ASSIGN(const double share, Evaluate({"--noshared_memory"}));
  EXPECT_GE(share, 1);
}

// Fails to complete a handshake with the server at `port`, in one of four ways.
void FailHandshake(int port, int way) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) == 0 &&
      way % 4 != 0) {
    // Plaintext; the beginning of a record; a record that is not a handshake.
    const absl::string_view texts[] = {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                                       "\x16\x03\x01\x02",
                                       "\x17\x03\x03\x01\x01xxxxxxxxxxxxx"};
    const absl::string_view text = texts[way % 4 - 1];
    send(fd, text.data(), text.size(), MSG_NOSIGNAL);
  }
  close(fd);
}

TEST_F(TlsClusterTest, AThousandBadHandshakesDisturbNobody) {
  ASSERT_NO_FATAL_FAILURE(CreateCluster(2, 2));
  cluster_->set_epochs(100000);
  ASSERT_OK(StartAll());
  ASSERT_OK(process(kChief).AwaitLine("Epoch 3/"));
  const std::vector<TaskId> servers = {
      kPs0, {TaskType::kPs, 1}, kWorker0, kWorker1};
  for (int i = 0; i < 1000; ++i) {
    ASSERT_OK_AND_ASSIGN(
        const HostPort address,
        ParseHostPort(*cluster_->cluster().Address(servers[i / 4 % 4])));
    FailHandshake(address.port, i);
  }
  ASSERT_NO_FATAL_FAILURE(ExpectTrainsOnAndEndsOnASignal());
  EXPECT_THAT(process(kChief).output(), Not(HasSubstr("is lost")));
  // Each server logs only a few of its 250 refusals.
  for (const TaskId task : servers) {
    const std::vector<std::string> lines =
        absl::StrSplit(process(task).output(), '\n');
    EXPECT_LE(lines.size(), 100) << process(task).output();
  }
}

TEST_F(TlsClusterTest, ATaskWithoutACertificateTakesNoPart) {
  ASSERT_NO_FATAL_FAILURE(CreateCluster(1, 1));
  ASSERT_OK(Start(kPs0));
  ASSERT_OK(cluster_->Start(kWorker0));  // In plaintext.
  ASSERT_OK(Start(kChief, {"--startup_timeout=6s"}));
  ExpectEndsWith(kChief, kRestartMe);
  EXPECT_THAT(process(kChief).output(), HasSubstr("waiting for worker 0 ("));
}

TEST_F(TlsClusterTest, OffThisMachineNothingStartsUnprotected) {
  const auto check = [](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"ps/ps", "--check_config"});
    return ProcessUnderTest::Start(
        flags,
        {{"TF_CONFIG", R"({"cluster":{"chief":["h0:1"],"worker":["h1:1"],)"
                       R"("ps":["h2:1"]},"task":{"type":"ps","index":0}})"}});
  };
  ASSERT_OK_AND_ASSIGN(const auto refused, check({}));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, refused->AwaitEnd());
  EXPECT_EQ(end.ShellCode(), 2);
  EXPECT_THAT(refused->output(),
              AllOf(HasSubstr("h0:1"), HasSubstr("--tls_cert"),
                    HasSubstr("--insecure")));
  ASSERT_OK_AND_ASSIGN(const auto accepted, check({"--insecure"}));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd accepted_end, accepted->AwaitEnd());
  EXPECT_TRUE(accepted_end.ok()) << accepted->output();
}

TEST_F(TlsClusterTest, AWorkerReadsNoFileOutsideOfItsRoots) {
  ASSERT_NO_FATAL_FAILURE(CreateCluster(1, 1));
  ASSERT_OK(Start(kPs0));
  ASSERT_OK(Start(kWorker0, {absl::StrCat("--data_root=", folder_)}));
  ASSERT_OK(Start(kChief));
  ExpectEndsWith(kChief, 1);
  EXPECT_THAT(
      process(kChief).output(),
      AllOf(HasSubstr("is outside of the folders"), HasSubstr("--data_root")));
}

}  // namespace
}  // namespace muster
