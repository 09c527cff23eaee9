// The kernel kills real processes because they exceed the memory limit of their
// control group. The effect is that of any SIGKILL: no step is lost or applied
// twice. Skipped if no control group can be created.
#include <signal.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"
#include "tests/cluster/process_under_test.h"
#include "tests/faults/limited_memory.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr TaskId kChief = ClusterUnderTest::kChief;
constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kPs0 = {TaskType::kPs, 0};

// More than a few tasks need, and less than kAllocation.
constexpr int64_t kLimitMebibytes = 1024;
constexpr char kAllocation[] = ":allocate=3072";

class MemoryLimitTest : public testing::Test {
 protected:
  void SetUp() override {
    name_ = testing::UnitTest::GetInstance()->current_test_info()->name();
    absl::StatusOr<std::unique_ptr<LimitedMemory>> memory =
        LimitedMemory::Create(name_, kLimitMebibytes);
    if (absl::IsPermissionDenied(memory.status())) {
      GTEST_SKIP() << memory.status();
    }
    ASSERT_OK(memory);
    memory_ = *std::move(memory);
  }

  // Starts `program` in all tasks. `task` exceeds its memory at `point`, is
  // killed, and is restarted.
  void Run(TaskId task, const std::string& program, const std::string& point,
           const std::vector<std::string>& flags) {
    ASSERT_OK_AND_ASSIGN(cluster_, ClusterUnderTest::Create(name_, 2, 2));
    std::filesystem::remove_all(cluster_->run_dir());
    cluster_->set_program(program);
    cluster_->set_prefix(task, memory_->Prefix());
    ASSERT_OK(
        cluster_->Start(task, flags, {{"MUSTER_FAULT", point + kAllocation}}));
    ASSERT_OK(cluster_->StartAll(flags));
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end,
                         cluster_->process(task).AwaitEnd());
    ASSERT_EQ(end.ShellCode(), 128 + SIGKILL)
        << cluster_->process(task).output();
    EXPECT_EQ(memory_->KillCount(), 1);
    ASSERT_OK(cluster_->Start(task, flags));
    for (const TaskId& member : cluster_->cluster().Members()) {
      ASSERT_OK_AND_ASSIGN(const ProcessEnd ended,
                           cluster_->process(member).AwaitEnd());
      ASSERT_EQ(ended.ShellCode(), 0) << member << " wrote:\n"
                                      << cluster_->process(member).output();
    }
  }

  std::string name_;
  std::unique_ptr<LimitedMemory> memory_;
  std::unique_ptr<ClusterUnderTest> cluster_;
};

TEST_F(MemoryLimitTest, StepsOfAWorkerRunElsewhere) {
  ASSERT_NO_FATAL_FAILURE(Run(kWorker0, "tests/faults/counting_program",
                              "worker.before_step@step=60",
                              {"--set", "recoveries=1"}));
  EXPECT_THAT(
      cluster_->process(kChief).output(),
      AllOf(HasSubstr("worker 0 "), HasSubstr("every closure counted once: ")));
}

TEST_F(MemoryLimitTest, TrainingIsRolledBackForAServer) {
  ASSERT_NO_FATAL_FAILURE(Run(kPs0, "tests/faults/chaos_program",
                              "ps.before_apply@push=20",
                              {"--set", "seconds=4", "--set",
                               absl::StrCat("folder=", testing::TempDir(), "/",
                                            name_, "/checkpoints")}));
  EXPECT_THAT(
      cluster_->process(kChief).output(),
      AllOf(HasSubstr("rolled back: "), HasSubstr("every step counted once:")));
}

// launch and the worker are in one group, as in a container. The other tasks
// leave the group. The kernel may kill a second process before the memory of
// the first one is free. A decoy process ensures that this is not launch: it
// has the same score as the worker and less memory, so it is killed after the
// worker and before launch. A process can always raise its own score, but
// lowering the score of launch needs privileges.
TEST_F(MemoryLimitTest, LaunchNamesTheLimitAndRestartsTheWorker) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/", name_);
  std::filesystem::remove_all(folder);
  const std::string worker = absl::StrCat(
      "mkdir ", folder, "/first && echo 1000 > /proc/self/oom_score_adj && ",
      "export MUSTER_FAULT=worker.before_step@step=60", kAllocation);
  const std::string script = absl::StrCat(
      "case $TF_CONFIG in *'\"worker\",\"index\":0'*) ", worker,
      ";; *) false;; ", "esac || echo $$ > ", memory_->OutsideFile(),
      "; exec tests/faults/counting_program --set recoveries=1");
  std::vector<std::string> waiting = memory_->Prefix();
  waiting.insert(waiting.end(),
                 {"/bin/sh", "-c",
                  "echo 1000 > /proc/self/oom_score_adj && echo waiting && "
                  "exec tail -f /dev/null"});
  ASSERT_OK_AND_ASSIGN(const auto decoy, ProcessUnderTest::Start(waiting));
  ASSERT_OK(decoy->AwaitLine("waiting"));

  std::vector<std::string> arguments = memory_->Prefix();
  for (const std::string& argument :
       {std::string("deploy/launch/launch"), std::string("--workers=2"),
        std::string("--ps=2"), std::string("--restart"), "--run_dir=" + folder,
        std::string("--program=/bin/sh"), std::string("--"), std::string("-c"),
        script}) {
    arguments.push_back(argument);
  }
  ASSERT_OK_AND_ASSIGN(const auto launch, ProcessUnderTest::Start(arguments));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, launch->AwaitEnd());
  EXPECT_EQ(end.ShellCode(), 0) << launch->output();
  decoy->SendSignal(SIGTERM);
  ASSERT_OK_AND_ASSIGN(const ProcessEnd decoy_end, decoy->AwaitEnd());
  const bool decoy_was_killed = decoy_end.ShellCode() == 128 + SIGKILL;
  EXPECT_EQ(memory_->KillCount(), decoy_was_killed ? 2 : 1);
  EXPECT_THAT(
      launch->output(),
      AllOf(HasSubstr("worker 0 was ended by signal 9 (Killed): probably by "
                      "the kernel, because the processes of control group /"),
            HasSubstr(absl::StrCat(name_, " exceeded their memory limit of ",
                                   kLimitMebibytes, " MiB")),
            HasSubstr("; restart 1"),
            HasSubstr("every closure counted once: ")));
}

}  // namespace
}  // namespace muster
