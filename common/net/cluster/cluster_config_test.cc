#include "common/net/cluster/cluster_config.h"

#include <map>
#include <string>
#include <vector>

#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;

ClusterConfig MakeConfig(
    const std::map<TaskType, std::vector<std::string>>& lists, TaskId task) {
  ClusterConfig config;
  absl::StatusOr<ClusterSpec> cluster = ClusterSpec::FromLists(lists);
  EXPECT_OK(cluster);
  config.cluster = cluster.value_or(ClusterSpec());
  config.task = task;
  config.source = "TF_CONFIG";
  return config;
}

ClusterConfig ParameterServers(TaskId task) {
  return MakeConfig(
      {{TaskType::kWorker, {"h0:1", "h1:1"}}, {TaskType::kPs, {"h2:1"}}}, task);
}

ClusterConfig Workers(TaskId task) {
  return MakeConfig({{TaskType::kWorker, {"h0:1", "h1:1"}}}, task);
}

auto Refuses(const std::string& words) {
  return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(words));
}

TEST(ClusterConfigTest, TaskWithoutAClusterRunsAlone) {
  EXPECT_TRUE(ClusterConfig().IsAlone());
  EXPECT_OK(CheckTaskIsInCluster(ClusterConfig()));
  EXPECT_FALSE(Workers({TaskType::kWorker, 0}).IsAlone());
  EXPECT_TRUE(
      MakeConfig({{TaskType::kWorker, {"h0:1"}}}, {TaskType::kWorker, 0})
          .IsAlone());
}

TEST(ClusterConfigTest, IndexPastTheEndNamesTheMissingEntries) {
  EXPECT_THAT(
      CheckTaskIsInCluster(Workers({TaskType::kWorker, 3})),
      Refuses("task.index is 3 but cluster.worker has 2 tasks (0 to "
              "1); did you mean to add \"host:port\" entries 2 and 3?"));
  EXPECT_THAT(CheckTaskIsInCluster(Workers({TaskType::kWorker, 2})),
              Refuses("did you mean to add \"host:port\" entry 2?"));
  EXPECT_THAT(CheckTaskIsInCluster(Workers({TaskType::kWorker, 2222})),
              Refuses("set task.index to this task's position in that list"));
  EXPECT_THAT(CheckTaskIsInCluster(ParameterServers({TaskType::kPs, 1})),
              Refuses("cluster.ps has 1 task (0)"));
}

TEST(ClusterConfigTest, RejectsARoleThatIsNotInTheCluster) {
  EXPECT_THAT(
      CheckTaskIsInCluster(Workers({TaskType::kPs, 0})),
      Refuses("task.type is \"ps\" but cluster has no ps, only worker"));
  EXPECT_THAT(CheckTaskIsInCluster(Workers({TaskType::kChief, 0})),
              Refuses("cluster has no chief"));
}

TEST(ClusterConfigTest, ChiefWithParameterServersNeedNotBeListed) {
  EXPECT_OK(CheckTaskIsInCluster(ParameterServers({TaskType::kChief, 0})));
  EXPECT_THAT(CheckTaskIsInCluster(ParameterServers({TaskType::kChief, 1})),
              Refuses("there can be only one chief"));
}

TEST(ClusterConfigTest, EvaluatorNeedNotBeListed) {
  EXPECT_OK(CheckTaskIsInCluster(Workers({TaskType::kEvaluator, 0})));
  EXPECT_TRUE(Workers({TaskType::kEvaluator, 0}).IsAlone());
  EXPECT_THAT(CheckTaskIsInCluster(Workers({TaskType::kEvaluator, 1})),
              Refuses("there can be only one evaluator"));
}

TEST(ClusterConfigTest, OnlyTheFirstWorkerNeedsNoCluster) {
  ClusterConfig config;
  config.task = {TaskType::kWorker, 0};
  EXPECT_OK(CheckTaskIsInCluster(config));
  config.task = {TaskType::kWorker, 1};
  EXPECT_THAT(CheckTaskIsInCluster(config),
              Refuses("this task is worker 1, but there is no cluster"));
  config.task = {TaskType::kPs, 0};
  EXPECT_THAT(CheckTaskIsInCluster(config), Refuses("there is no cluster"));
}

TEST(ClusterConfigTest, ParameterServerTrainingNeedsServersAndWorkers) {
  EXPECT_OK(
      CheckParameterServerCluster(ParameterServers({TaskType::kChief, 0})));
  EXPECT_THAT(CheckParameterServerCluster(Workers({TaskType::kWorker, 0})),
              Refuses("needs a \"ps\""));
  EXPECT_THAT(CheckParameterServerCluster(ClusterConfig()),
              Refuses("needs a \"ps\" in the cluster, but the cluster is {}"));
  EXPECT_THAT(CheckParameterServerCluster(MakeConfig(
                  {{TaskType::kPs, {"h0:1"}}}, {TaskType::kChief, 0})),
              Refuses("needs a \"worker\""));
  EXPECT_OK(CheckParameterServerCluster(
      MakeConfig({{TaskType::kPs, {"h0:1"}}}, {TaskType::kPs, 0})));
}

TEST(ClusterConfigTest, SynchronousTrainingNeedsWorkersAndNoServerTask) {
  EXPECT_OK(CheckMultiWorkerCluster(Workers({TaskType::kWorker, 0})));
  EXPECT_OK(CheckMultiWorkerCluster(ClusterConfig()));
  EXPECT_THAT(CheckMultiWorkerCluster(ParameterServers({TaskType::kPs, 0})),
              Refuses("this task is ps 0, but synchronous training has no "
                      "parameter servers"));
  EXPECT_THAT(CheckMultiWorkerCluster(MakeConfig({{TaskType::kPs, {"h0:1"}}},
                                                 {TaskType::kChief, 0})),
              Refuses("needs a \"chief\" or a \"worker\""));
}

TEST(ClusterConfigTest, DescriptionNamesEveryTaskAndThisOne) {
  EXPECT_EQ(DescribeCluster(ParameterServers({TaskType::kWorker, 1})),
            "read from    TF_CONFIG\n"
            "this task    worker 1\n"
            "training     parameter servers (workers: 2, servers: 1)\n"
            "worker 0     h0:1\n"
            "worker 1     h1:1  <- this task\n"
            "ps 0         h2:1\n");
  EXPECT_THAT(DescribeCluster(ClusterConfig()),
              HasSubstr("training     in this process alone\n"));
}

}  // namespace
}  // namespace muster
