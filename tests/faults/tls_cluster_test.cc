// Real processes that speak TLS: training of both kinds, certificates that are
// replaced meanwhile, and what tasks refuse.
#include <signal.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/status_matchers.h"
#include "common/net/rpc/certificate_authority.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr TaskId kChief = ClusterUnderTest::kChief;
constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};
constexpr TaskId kPs0 = {TaskType::kPs, 0};

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

  std::string folder_;
  std::unique_ptr<CertificateAuthority> authority_;
  std::unique_ptr<ClusterUnderTest> cluster_;
};

TEST_F(TlsClusterTest, ParameterServersTrainWhileCertificatesAreReplaced) {
  ASSERT_NO_FATAL_FAILURE(CreateCluster(2, 2));
  cluster_->set_epochs(400);
  ASSERT_OK(StartAll({"--coordinator_timeout=60s"}));
  ASSERT_OK(process(kChief).AwaitLine("Epoch 3/"));
  for (const TaskId task : cluster_->cluster().Members()) {
    ASSERT_OK(IssueFiles(task));
  }
  process(kWorker1).SendSignal(SIGKILL);
  ASSERT_OK(process(kChief).AwaitLine("is lost"));
  ASSERT_OK(Start(kWorker1, {"--coordinator_timeout=60s"}));
  ASSERT_OK(process(kChief).AwaitLine("is back"));
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
  EXPECT_THAT(process(kWorker0).output(), HasSubstr("gRPC"));
}

TEST_F(TlsClusterTest, ATaskWithoutACertificateTakesNoPart) {
  ASSERT_NO_FATAL_FAILURE(CreateCluster(1, 1));
  ASSERT_OK(Start(kPs0));
  ASSERT_OK(cluster_->Start(kWorker0));  // In plaintext.
  ASSERT_OK(Start(kChief, {"--startup_timeout=6s"}));
  ExpectEndsWith(kChief, 1);
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
