// Kills and restarts tasks that a seed selects, repeatedly, while steps are
// counted. The program itself checks that every step is applied exactly once
// and that no rollback undoes a step before a checkpoint. The test checks that
// the program succeeds and leaves no processes and no files.
//
//   bazel test //tests/faults:chaos_test
//   bazel test //tests/faults:chaos_test --test_arg=--chaos_seconds=60
//       --test_arg=--chaos_seed=7
#include <signal.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr TaskId kChief = ClusterUnderTest::kChief;

int64_t chaos_seconds = 12;
uint64_t chaos_seed = 20;

int CountOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

class ChaosTest : public testing::Test {
 protected:
  ChaosTest() : cluster_(*ClusterUnderTest::Create("chaos", 2, 2)) {
    cluster_->set_program("tests/faults/chaos_program");
    std::filesystem::remove_all(cluster_->run_dir());
  }

  std::string folder() const { return cluster_->run_dir() + "/checkpoints"; }

  ProcessUnderTest& process(TaskId task) { return cluster_->process(task); }

  void Kill(TaskId task) {
    process(task).SendSignal(SIGKILL);
    ASSERT_OK(process(task).AwaitEnd());
  }

  const std::unique_ptr<ClusterUnderTest> cluster_;
};

TEST_F(ChaosTest, EveryStepIsAppliedOnce) {
  SCOPED_TRACE(absl::StrCat("--chaos_seed=", chaos_seed));
  RandomStream random(FoldIn(chaos_seed, "chaos"));
  const std::vector<TaskId> tasks = {{TaskType::kWorker, 0},
                                     {TaskType::kWorker, 1},
                                     {TaskType::kPs, 0},
                                     {TaskType::kPs, 1}};
  ASSERT_OK(cluster_->StartAll(
      {"--set", absl::StrCat("seconds=", chaos_seconds), "--set",
       absl::StrCat("folder=", folder()), "--max_recoveries=1000"}));
  ASSERT_OK(process(kChief).AwaitLine("through: "));
  const absl::Time end = absl::Now() + absl::Seconds(chaos_seconds - 2);
  int server_kills = 0;
  while (absl::Now() < end) {
    // One or two tasks are killed at a time.
    std::vector<TaskId> victims = {tasks[random.Below(4)]};
    const TaskId other = tasks[random.Below(4)];
    if (random.Below(3) == 0 && other != victims[0]) victims.push_back(other);
    for (const TaskId& victim : victims) {
      ASSERT_NO_FATAL_FAILURE(Kill(victim));
      if (victim.type == TaskType::kPs) ++server_kills;
    }
    for (const TaskId& victim : victims) {
      ASSERT_OK(cluster_->Start(victim));
    }
    // Waits until this many further rounds are complete.
    for (uint64_t rounds = 1 + random.Below(12); rounds > 0; --rounds) {
      ASSERT_OK(process(kChief).AwaitLine("through: "));
      if (absl::Now() >= end) break;
    }
  }
  ASSERT_OK_AND_ASSIGN(const ProcessEnd chief, process(kChief).AwaitEnd());
  const std::string output = process(kChief).output();
  ASSERT_EQ(chief.ShellCode(), 0) << output;
  EXPECT_THAT(output, HasSubstr("every step counted once: "));
  EXPECT_GT(server_kills, 0);
  EXPECT_GE(CountOf(output, "rolled back: "), 1);
  for (const TaskId& task : tasks) {
    ASSERT_OK_AND_ASSIGN(const ProcessEnd ended, process(task).AwaitEnd());
    EXPECT_EQ(ended.ShellCode(), 0) << task << " wrote:\n"
                                    << process(task).output();
  }
  for (const auto& file : std::filesystem::directory_iterator(folder())) {
    const std::string name = file.path().filename().string();
    EXPECT_TRUE(name == "checkpoint" || absl::EndsWith(name, ".index") ||
                absl::StrContains(name, ".data-"))
        << name << " was left over";
  }
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    absl::string_view flag = argv[i];
    if (absl::ConsumePrefix(&flag, "--chaos_seconds=")) {
      if (!absl::SimpleAtoi(flag, &muster::chaos_seconds)) return 2;
    } else if (absl::ConsumePrefix(&flag, "--chaos_seed=")) {
      if (!absl::SimpleAtoi(flag, &muster::chaos_seed)) return 2;
    }
  }
  return RUN_ALL_TESTS();
}
