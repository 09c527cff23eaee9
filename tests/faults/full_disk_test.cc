// Real processes whose checkpoints go to a disk that is too small.
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"

namespace muster {
namespace {

using testing::HasSubstr;

constexpr TaskId kChief = ClusterUnderTest::kChief;
constexpr TaskId kPs1 = {TaskType::kPs, 1};

// A checkpoint of the job takes about 60 KB: one fits, and a second does not.
constexpr char kDiskOptions[] = "size=100k";

absl::Status Write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  return file
             ? absl::OkStatus()
             : absl::PermissionDeniedError(absl::StrCat("cannot write ", path));
}

// Gives this process mounts of its own. Only while it has one thread.
absl::Status EnterMountNamespace() {
  const uid_t user = getuid();
  const gid_t group = getgid();
  if (unshare(CLONE_NEWNS) != 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
      return absl::PermissionDeniedError(
          "this process may not make mount namespaces");
    }
    RETURN_IF_ERROR(Write("/proc/self/setgroups", "deny"));
    RETURN_IF_ERROR(
        Write("/proc/self/uid_map", absl::StrCat("0 ", user, " 1")));
    RETURN_IF_ERROR(
        Write("/proc/self/gid_map", absl::StrCat("0 ", group, " 1")));
  }
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, "cannot make mounts private");
}

TEST(FullDiskTest, TrainingGoesOnAndTheLastCheckpointThatFitIsKept) {
  const absl::Status entered = EnterMountNamespace();
  if (!entered.ok()) GTEST_SKIP() << entered;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ClusterUnderTest> cluster,
                       ClusterUnderTest::Create("FullDisk", 2, 2));
  const std::string disk = cluster->run_dir() + "/recovery";
  std::filesystem::create_directories(disk);
  ASSERT_EQ(mount("none", disk.c_str(), "tmpfs", 0, kDiskOptions), 0);
  cluster->set_job("tests/faults/recovering_digits.job");
  cluster->set_epochs(60);
  ASSERT_OK(cluster->StartAll({"--set", absl::StrCat("recovery_dir=", disk)}));
  ProcessUnderTest& chief = cluster->process(kChief);
  ASSERT_OK_AND_ASSIGN(
      const std::string line,
      chief.AwaitLine("could not be written, and training continues"));
  EXPECT_THAT(line, HasSubstr("No space left on device"));

  cluster->process(kPs1).SendSignal(SIGKILL);
  ASSERT_OK(cluster->process(kPs1).AwaitEnd());
  ASSERT_OK(cluster->Start(kPs1));
  ASSERT_OK(chief.AwaitLine("training was rolled back to checkpoint"));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, chief.AwaitEnd());
  EXPECT_EQ(end.ShellCode(), 0) << chief.output();
}

}  // namespace
}  // namespace muster
