#include "common/net/cluster/cluster_spec.h"

#include <map>
#include <string>
#include <vector>

#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr TaskId kChief = {TaskType::kChief, 0};
constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};
constexpr TaskId kPs0 = {TaskType::kPs, 0};
constexpr TaskId kEvaluator = {TaskType::kEvaluator, 0};

using Lists = std::map<TaskType, std::vector<std::string>>;

ClusterSpec MakeCluster(const Lists& lists) {
  absl::StatusOr<ClusterSpec> cluster = ClusterSpec::FromLists(lists);
  EXPECT_OK(cluster);
  return cluster.value_or(ClusterSpec());
}

ClusterSpec WithChief() {
  return MakeCluster({{TaskType::kChief, {"h0:1"}},
                      {TaskType::kWorker, {"h1:1", "h2:1"}},
                      {TaskType::kPs, {"h3:1"}},
                      {TaskType::kEvaluator, {"h4:1"}}});
}

ClusterSpec WithoutChief() {
  return MakeCluster({{TaskType::kWorker, {"h1:1", "h2:1"}}});
}

std::string Complaint(std::map<TaskType, JobSpec> jobs) {
  const absl::StatusOr<ClusterSpec> cluster =
      ClusterSpec::Create(std::move(jobs));
  EXPECT_THAT(cluster, StatusIs(absl::StatusCode::kInvalidArgument));
  return std::string(cluster.status().message());
}

TEST(ClusterSpecTest, ReturnsTheAddressOfEachTask) {
  const ClusterSpec cluster = WithChief();
  EXPECT_THAT(cluster.Address(kWorker1), IsOkAndHolds("h2:1"));
  EXPECT_THAT(cluster.Address({TaskType::kWorker, 2}),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("worker 2 is not in the cluster {")));
  EXPECT_EQ(cluster.task_count(TaskType::kWorker), 2);
  EXPECT_FALSE(WithoutChief().Has(TaskType::kChief));
}

TEST(ClusterSpecTest, MembersExcludeTheEvaluator) {
  EXPECT_THAT(WithChief().Members(),
              ElementsAre(kChief, kWorker0, kWorker1, kPs0));
}

TEST(ClusterSpecTest, WorkerZeroIsChiefIfThereIsNone) {
  EXPECT_TRUE(WithChief().IsChief(kChief));
  EXPECT_FALSE(WithChief().IsChief(kWorker0));
  EXPECT_FALSE(WithChief().IsChief(kPs0));
  EXPECT_TRUE(WithChief().IsChief(kEvaluator));
  EXPECT_TRUE(WithoutChief().IsChief(kWorker0));
  EXPECT_FALSE(WithoutChief().IsChief(kWorker1));
}

TEST(ClusterSpecTest, ChiefIsTheFirstInputPipeline) {
  const ClusterSpec cluster = WithChief();
  EXPECT_THAT(cluster.IdInCluster(kChief), IsOkAndHolds(0));
  EXPECT_THAT(cluster.IdInCluster(kWorker1), IsOkAndHolds(2));
  EXPECT_THAT(WithoutChief().IdInCluster(kWorker1), IsOkAndHolds(1));
  EXPECT_THAT(cluster.IdInCluster(kEvaluator), IsOkAndHolds(0));
  EXPECT_THAT(cluster.IdInCluster(kPs0),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(cluster.WorkerCount(TaskType::kWorker), IsOkAndHolds(3));
  EXPECT_THAT(cluster.WorkerCount(TaskType::kEvaluator), IsOkAndHolds(1));
  EXPECT_THAT(cluster.WorkerCount(TaskType::kPs),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ClusterSpecTest, PrintsInTheNotationOfTfConfig) {
  EXPECT_EQ(WithoutChief().ToString(), R"({"worker":["h1:1","h2:1"]})");
  ASSERT_OK_AND_ASSIGN(
      const ClusterSpec sparse,
      ClusterSpec::Create({{TaskType::kWorker, {{{1, "h2:1"}}, true}}}));
  EXPECT_EQ(sparse.ToString(), R"({"worker":{"1":"h2:1"}})");
}

TEST(ClusterSpecTest, EquivalentAddressesAreEqual) {
  EXPECT_EQ(
      MakeCluster({{TaskType::kWorker, {"grpc://h1:1", "h2:01"}}}).ToString(),
      WithoutChief().ToString());
  EXPECT_NE(WithChief().ToString(), WithoutChief().ToString());
}

TEST(ClusterSpecTest, RejectsInvalidAddresses) {
  EXPECT_THAT(Complaint({{TaskType::kPs, {{{0, "h0"}}}}}),
              HasSubstr("cluster.ps[0]: \"h0\" has no port"));
  EXPECT_THAT(Complaint({{TaskType::kPs, {{{0, "0.0.0.0:1"}}}}}),
              HasSubstr("is not an address to connect to"));
}

TEST(ClusterSpecTest, RejectsTheSameAddressForTwoTasks) {
  EXPECT_THAT(Complaint({{TaskType::kWorker, {{{0, "h0:1"}, {1, "h1:1"}}}},
                         {TaskType::kPs, {{{0, "h1:1"}}}}}),
              HasSubstr("cluster.worker[1] and cluster.ps[0] are both "
                        "\"h1:1\"; each task needs a separate address"));
}

TEST(ClusterSpecTest, RejectsASecondChiefOrEvaluator) {
  EXPECT_THAT(Complaint({{TaskType::kChief, {{{0, "h0:1"}, {1, "h1:1"}}}}}),
              HasSubstr("cluster.chief has 2 tasks"));
  EXPECT_THAT(Complaint({{TaskType::kEvaluator, {{{0, "h0:1"}, {1, "h1:1"}}}}}),
              HasSubstr("cluster.evaluator has 2 tasks"));
  EXPECT_THAT(Complaint({{TaskType::kChief, {{{1, "h0:1"}}, true}}}),
              HasSubstr("its only task has index 0"));
  EXPECT_THAT(Complaint({{TaskType::kWorker, {{{-1, "h0:1"}}, true}}}),
              HasSubstr("numbered from 0"));
}

TEST(ClusterSpecTest, RejectsLocalhostBesideOtherHosts) {
  EXPECT_THAT(
      Complaint({{TaskType::kWorker, {{{0, "localhost:1"}, {1, "h1:1"}}}}}),
      HasSubstr("cluster.worker[0] is \"localhost:1\" and cluster.worker[1] is "
                "\"h1:1\"; localhost is a different machine on every host"));
  // No task connects to an evaluator.
  EXPECT_OK(ClusterSpec::FromLists({{TaskType::kWorker, {"h0:1"}},
                                    {TaskType::kEvaluator, {"localhost:1"}}}));
}

}  // namespace
}  // namespace muster
