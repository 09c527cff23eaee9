// Real processes whose checkpoints are in a folder in which the parameter
// servers may not write.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr TaskId kChief = ClusterUnderTest::kChief;

class RefusedFolderTest : public testing::Test {
 protected:
  RefusedFolderTest()
      : cluster_(*ClusterUnderTest::Create(
            testing::UnitTest::GetInstance()->current_test_info()->name(), 1,
            2)) {
    std::filesystem::remove_all(cluster_->run_dir());
    cluster_->set_job("tests/faults/recovering_digits.job");
    // Training would not end by itself.
    cluster_->set_epochs(100000);
  }

  // The job ends before its first step, with an error that names the flag to
  // use. Only the chief has `flags`; the flags of a server decide where it may
  // write.
  void ExpectRefused(const std::vector<std::string>& flags) {
    ASSERT_OK(cluster_->Start(kChief, flags));
    ASSERT_OK(cluster_->StartAll());
    ASSERT_OK_AND_ASSIGN(const auto end, cluster_->process(kChief).AwaitEnd());
    EXPECT_NE(end.ShellCode(), 0);
    EXPECT_THAT(cluster_->process(kChief).output(),
                AllOf(HasSubstr(outside_), HasSubstr("--checkpoint_root"),
                      Not(HasSubstr("Epoch 1/"))));
  }

  const std::string outside_ = absl::StrCat(
      testing::TempDir(), "/outside_",
      testing::UnitTest::GetInstance()->current_test_info()->name());
  const std::unique_ptr<ClusterUnderTest> cluster_;
};

TEST_F(RefusedFolderTest, OfRecoveryEndsTheJobAtItsStart) {
  ExpectRefused({"--set", absl::StrCat("recovery_dir=", outside_)});
}

TEST_F(RefusedFolderTest, OfBackupsEndsTheJobAtItsStart) {
  const std::string job = cluster_->run_dir() + "/backed_up.job";
  std::filesystem::create_directories(cluster_->run_dir());
  std::ifstream original("tests/faults/recovering_digits.job");
  std::ofstream(job) << original.rdbuf() << "callbacks { backup_and_restore { "
                     << "backup_dir: \"" << outside_ << "\" } }\n";
  cluster_->set_job(job);
  ExpectRefused({"--set", absl::StrCat("data_dir=",
                                       std::filesystem::current_path().string(),
                                       "/examples/data/digits")});
}

}  // namespace
}  // namespace muster
