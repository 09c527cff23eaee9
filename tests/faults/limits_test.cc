// Real processes that start with too few resources. They end with a log line
// that names the missing resource.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/base/config.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

using testing::HasSubstr;
using testing::Not;

// An executable in one role.
struct Role {
  std::string name;
  std::string executable;
  TaskId task;
  int ps_count;  // 0: trains in sync with another worker.
  bool has_job;
};

const Role kServer = {"ParameterServer", "ps/ps", {TaskType::kPs, 0}, 1, false};
const Role kWorker = {
    "Worker", "worker/worker", {TaskType::kWorker, 0}, 1, false};
const Role kCoordinator = {
    "Coordinator", "coordinator/coordinator", {TaskType::kChief, 0}, 1, true};
const Role kSynchronousWorker = {
    "SynchronousWorker", "worker/worker", {TaskType::kWorker, 0}, 0, true};

class LimitsTest : public testing::Test {
 protected:
  // Starts the task alone, after the shell command `limit` ("ulimit -n 16").
  std::unique_ptr<ProcessUnderTest> Start(const Role& role,
                                          const std::string& limit) {
    cluster_ = *ClusterUnderTest::Create(
        testing::UnitTest::GetInstance()->current_test_info()->name(),
        role.ps_count > 0 ? 1 : 2, role.ps_count);
    std::vector<std::string> arguments = {
        "/bin/sh",
        "-c",
        absl::StrCat(limit, "; exec \"$0\" \"$@\""),
        role.executable,
        "--startup_timeout=20s",
        absl::StrCat("--run_dir=", cluster_->run_dir())};
    if (role.has_job) {
      arguments.push_back("--job=examples/digits/digits.job");
    }
    auto process = ProcessUnderTest::Start(
        arguments, {{"TF_CONFIG", cluster_->TfConfig(role.task)}});
    EXPECT_OK(process);
    return *std::move(process);
  }

  void ExpectFails(ProcessUnderTest& process, const std::string& message) {
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end, process.AwaitEnd());
    EXPECT_EQ(end.ShellCode(), 1) << process.output();
    EXPECT_THAT(process.output(), HasSubstr(message));
    EXPECT_THAT(process.output(), Not(HasSubstr("terminate called")));
  }

  std::unique_ptr<ClusterUnderTest> cluster_;
};

std::string RoleName(const testing::TestParamInfo<Role>& info) {
  return info.param.name;
}

class EveryRoleTest : public LimitsTest,
                      public testing::WithParamInterface<Role> {};

TEST_P(EveryRoleTest, SaysThatAddressSpaceIsMissing) {
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
  GTEST_SKIP() << "sanitizers reserve more address space than the limit";
#endif
  for (const int kibibytes : {120000, 203000, 206000, 214000, 500000}) {
    SCOPED_TRACE(kibibytes);
    const auto process =
        Start(GetParam(), absl::StrCat("ulimit -v ", kibibytes));
    ExpectFails(*process, absl::StrCat("Address space is limited to ",
                                       kibibytes, " KiB (ulimit -v)"));
  }
}

TEST_P(EveryRoleTest, SaysThatFilesAreMissing) {
  const auto process = Start(GetParam(), "ulimit -n 20");
  ExpectFails(*process, "open files are limited to 20 (ulimit -n)");
}

INSTANTIATE_TEST_SUITE_P(Roles, EveryRoleTest,
                         testing::Values(kServer, kWorker, kCoordinator,
                                         kSynchronousWorker),
                         RoleName);

class ListeningRoleTest : public LimitsTest,
                          public testing::WithParamInterface<Role> {};

TEST_P(ListeningRoleTest, NamesTheProcessThatHasItsPort) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size),
            0);
  const int port = ntohs(address.sin_port);
  const Role& role = GetParam();
  cluster_ = *ClusterUnderTest::Create("taken", role.ps_count > 0 ? 1 : 2,
                                       role.ps_count);
  ASSERT_OK_AND_ASSIGN(
      ProcessUnderTest* const process,
      cluster_->Start(role.task,
                      {absl::StrCat("--bind_address=127.0.0.1:", port)}));
  ExpectFails(*process, absl::StrCat("port ", port, " is taken by process ",
                                     getpid(), " (limits_test"));
  close(listener);
}

INSTANTIATE_TEST_SUITE_P(Roles, ListeningRoleTest,
                         testing::Values(kServer, kWorker, kSynchronousWorker),
                         RoleName);

}  // namespace
}  // namespace muster
