#include "deploy/launch/task_plan.h"

#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/cluster/tf_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr TaskId kChief = {TaskType::kChief, 0};
constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kPs0 = {TaskType::kPs, 0};

absl::StatusOr<std::string> InBin(absl::string_view name) {
  return absl::StrCat("/bin/", name);
}

TEST(TaskPlanTest, EveryTaskIsToldTheClusterAndItsPlace) {
  ClusterPlan plan = {.worker_count = 1, .ps_count = 1, .with_evaluator = true};
  plan.job_file = "a.job";
  plan.settings = {{"epochs", "3"}};
  plan.run_dir = "runs/a";
  ASSERT_OK_AND_ASSIGN(const std::vector<TaskPlan> tasks,
                       PlanTasks(plan, {10, 11, 12, 13}, InBin));
  ASSERT_EQ(tasks.size(), 4u);
  for (const TaskPlan& task : tasks) {
    ASSERT_OK_AND_ASSIGN(
        const ClusterConfig config,
        ParseTfConfig(task.environment.at("TF_CONFIG"), "TF_CONFIG"));
    EXPECT_EQ(config.task, task.task);
    EXPECT_EQ(config.cluster.ToString(),
              R"({"chief":["localhost:10"],"worker":["localhost:11"],)"
              R"("ps":["localhost:12"]})");
    EXPECT_EQ(task.environment.at("MUSTER_RUN_DIR"), "runs/a");
  }
  EXPECT_THAT(tasks[0].arguments, ElementsAre("/bin/coordinator", "--job=a.job",
                                              "--set", "epochs=3"));
  EXPECT_THAT(tasks[1].arguments,
              ElementsAre("/bin/worker", "--set", "epochs=3"));
  EXPECT_THAT(tasks[2].arguments, ElementsAre("/bin/ps", "--set", "epochs=3"));
  EXPECT_THAT(tasks[3].arguments, ElementsAre("/bin/coordinator", "--job=a.job",
                                              "--set", "epochs=3"));
}

TEST(TaskPlanTest, OnlyTheLeaderIsToldWhereTheJobIsWatched) {
  for (const bool with_chief : {true, false}) {
    ClusterPlan plan = {
        .worker_count = 2, .ps_count = 0, .with_chief = with_chief};
    plan.leader_environment = {{"MUSTER_STATUS_PORT", "0"}};
    ASSERT_OK_AND_ASSIGN(const std::vector<TaskPlan> tasks,
                         PlanTasks(plan,
                                   with_chief ? std::vector<int>{10, 11, 12}
                                              : std::vector<int>{10, 11},
                                   InBin));
    for (size_t i = 0; i < tasks.size(); ++i) {
      EXPECT_EQ(tasks[i].environment.contains("MUSTER_STATUS_PORT"), i == 0);
    }
  }
}

TEST(TaskPlanTest, WithoutServersEveryWorkerRunsTheJob) {
  ClusterPlan plan = {.worker_count = 2, .ps_count = 0, .with_chief = false};
  plan.job_file = "a.job";
  ASSERT_OK_AND_ASSIGN(const std::vector<TaskPlan> tasks,
                       PlanTasks(plan, {10, 11}, InBin));
  for (const TaskPlan& task : tasks) {
    EXPECT_THAT(task.arguments, ElementsAre("/bin/worker", "--job=a.job"));
  }
}

TEST(TaskPlanTest, OneProcessGetsNoCluster) {
  ClusterPlan plan = {.worker_count = 0, .ps_count = 0};
  ASSERT_OK_AND_ASSIGN(const std::vector<TaskPlan> tasks,
                       PlanTasks(plan, {10}, InBin));
  EXPECT_THAT(tasks.at(0).arguments, ElementsAre("/bin/coordinator"));
  EXPECT_EQ(tasks.at(0).environment.at("TF_CONFIG"), "");
}

TEST(TaskPlanTest, AUsersProgramRunsInEveryRole) {
  ClusterPlan plan = {.worker_count = 1, .ps_count = 1};
  plan.program = {"./mine", "--fast"};
  ASSERT_OK_AND_ASSIGN(const std::vector<TaskPlan> tasks,
                       PlanTasks(plan, {10, 11, 12}, InBin));
  for (const TaskPlan& task : tasks) {
    EXPECT_THAT(task.arguments, ElementsAre("./mine", "--fast"));
  }
}

TEST(TaskPlanTest, TasksThatComputeShareTheCores) {
  ClusterPlan plan = {.worker_count = 2, .ps_count = 2, .core_count = 16};
  EXPECT_EQ(ThreadCountFor(kWorker0, plan), 4);
  EXPECT_EQ(ThreadCountFor(kPs0, plan), 4);
  EXPECT_EQ(ThreadCountFor(kChief, plan), 1);
  plan.core_count = 2;
  EXPECT_EQ(ThreadCountFor(kWorker0, plan), 1);
  plan = {.worker_count = 0, .ps_count = 0, .core_count = 8};
  EXPECT_EQ(ThreadCountFor(kChief, plan), 8);
}

TEST(TaskPlanTest, SaysWhatCannotBeStarted) {
  EXPECT_THAT(PlanTasks({.worker_count = 0, .ps_count = 1}, {1, 2}, InBin),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("add --workers=1")));
  EXPECT_THAT(PlanTasks({.worker_count = 0, .ps_count = 0, .with_chief = false},
                        {}, InBin),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("nothing to start")));
  EXPECT_THAT(
      PlanTasks({.worker_count = -1}, {}, InBin),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--workers=-1")));
}

}  // namespace
}  // namespace muster
