// Real processes whose checkpoints are on a disk that is too small, that
// becomes read-only, or that fails.
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
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"

namespace muster {
namespace {

using testing::HasSubstr;

constexpr TaskId kChief = ClusterUnderTest::kChief;
constexpr TaskId kPs1 = {TaskType::kPs, 1};

// A checkpoint of the job takes about 60 KB, so only one fits.
constexpr char kDiskOptions[] = "size=100k";

absl::Status Write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  return file
             ? absl::OkStatus()
             : absl::PermissionDeniedError(absl::StrCat("cannot write ", path));
}

// Moves this process into a separate mount namespace. Call it while the process
// has only one thread.
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

// Set by main().
absl::Status entered;

class FullDiskTest : public testing::Test {
 protected:
  FullDiskTest()
      : cluster_(*ClusterUnderTest::Create(
            testing::UnitTest::GetInstance()->current_test_info()->name(), 2,
            2)),
        disk_(cluster_->run_dir() + "/recovery") {
    std::filesystem::remove_all(cluster_->run_dir());
    std::filesystem::create_directories(disk_);
    cluster_->set_job("tests/faults/recovering_digits.job");
    cluster_->set_epochs(100000);
  }

  ProcessUnderTest& chief() { return cluster_->process(kChief); }

  void StartAll() {
    ASSERT_OK(
        cluster_->StartAll({"--set", absl::StrCat("recovery_dir=", disk_)}));
  }

  void ExpectTrainsWithoutSaving(const std::string& why) {
    ASSERT_OK_AND_ASSIGN(
        const std::string line,
        chief().AwaitLine("could not be written, and training continues"));
    EXPECT_THAT(line, HasSubstr(why));
    ASSERT_OK(chief().AwaitLine("Epoch "));
  }

  // Expects recovery from the previous checkpoint.
  void ExpectRecoversAServer() {
    cluster_->process(kPs1).SendSignal(SIGKILL);
    ASSERT_OK(cluster_->process(kPs1).AwaitEnd());
    ASSERT_OK(cluster_->Start(kPs1));
    ASSERT_OK(chief().AwaitLine("training was rolled back to checkpoint"));
    ASSERT_OK(chief().AwaitLine("Epoch "));
  }

  const std::unique_ptr<ClusterUnderTest> cluster_;
  const std::string disk_;
};

TEST_F(FullDiskTest, TrainingGoesOnAndTheLastCheckpointThatFitIsKept) {
  if (!entered.ok()) GTEST_SKIP() << entered;
  ASSERT_EQ(mount("none", disk_.c_str(), "tmpfs", 0, kDiskOptions), 0);
  cluster_->set_epochs(60);
  ASSERT_NO_FATAL_FAILURE(StartAll());
  ExpectTrainsWithoutSaving("No space left on device");
  ASSERT_NO_FATAL_FAILURE(ExpectRecoversAServer());
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, chief().AwaitEnd());
  EXPECT_EQ(end.ShellCode(), 0) << chief().output();
}

TEST_F(FullDiskTest, TrainingGoesOnWhenTheDiskBecomesReadOnly) {
  if (!entered.ok()) GTEST_SKIP() << entered;
  ASSERT_EQ(mount("none", disk_.c_str(), "tmpfs", 0, nullptr), 0);
  ASSERT_NO_FATAL_FAILURE(StartAll());
  // The disk cannot become read-only while a file is open for writing.
  do {
    ASSERT_OK(chief().AwaitLine("Epoch "));
  } while (!std::filesystem::exists(disk_ + "/checkpoint") ||
           mount(nullptr, disk_.c_str(), nullptr, MS_REMOUNT | MS_RDONLY,
                 nullptr) != 0);
  ExpectTrainsWithoutSaving("Read-only file system");
  ExpectRecoversAServer();
}

TEST_F(FullDiskTest, TrainingGoesOnWhenTheDiskOfAServerFailsToSync) {
  const std::string failing = cluster_->run_dir() + "/fsync_fails";
  ASSERT_OK(cluster_->Start(kPs1, {},
                            {{"LD_PRELOAD", "tests/faults/libfailing_fsync.so"},
                             {"FAILING_FSYNC_FILE", failing}}));
  ASSERT_NO_FATAL_FAILURE(StartAll());
  do {
    ASSERT_OK(chief().AwaitLine("Epoch "));
  } while (!std::filesystem::exists(disk_ + "/checkpoint"));
  ASSERT_OK(Write(failing, "now"));
  ExpectTrainsWithoutSaving("Input/output error");
  EXPECT_THAT(chief().output(), HasSubstr("ps 1"));
  ExpectRecoversAServer();
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  muster::entered = muster::EnterMountNamespace();
  return RUN_ALL_TESTS();
}
