#include "common/net/cluster/cluster_codec.h"

#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/cluster.pb.h"

namespace muster {
namespace {

using testing::HasSubstr;

TEST(ClusterCodecTest, RoundTripsTasks) {
  for (TaskType type : kTaskTypes) {
    const TaskId task = {type, 3};
    EXPECT_THAT(DecodeTask(EncodeTask(task)), IsOkAndHolds(task));
  }
}

TEST(ClusterCodecTest, RoundTripsClusters) {
  ASSERT_OK_AND_ASSIGN(
      const ClusterSpec cluster,
      ClusterSpec::Create({{TaskType::kWorker, {{{4, "w:1"}}, true}},
                           {TaskType::kPs, {{{0, "p:1"}, {1, "q:1"}}}}}));
  EXPECT_THAT(DecodeCluster(EncodeCluster(cluster)), IsOkAndHolds(cluster));
}

TEST(ClusterCodecTest, RejectsUnknownRolesAndNegativeIndices) {
  proto::Task task;
  EXPECT_THAT(DecodeTask(task), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("task type 0")));
  task.set_type(static_cast<proto::Task::Type>(99));
  EXPECT_THAT(DecodeTask(task), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("task type 99")));
  task.set_type(proto::Task::PS);
  task.set_index(-1);
  EXPECT_THAT(DecodeTask(task), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("negative")));
}

TEST(ClusterCodecTest, RejectsRepeatedRolesAndInvalidAddresses) {
  proto::Cluster cluster;
  for (int i = 0; i < 2; ++i) {
    proto::Cluster::Job& job = *cluster.add_jobs();
    job.set_type(proto::Task::PS);
    (*job.mutable_addresses())[i] = "h:1";
  }
  EXPECT_THAT(DecodeCluster(cluster),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("ps is in the cluster twice")));
  cluster.mutable_jobs()->RemoveLast();
  (*cluster.mutable_jobs(0)->mutable_addresses())[0] = "h";
  EXPECT_THAT(
      DecodeCluster(cluster),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has no port")));
}

}  // namespace
}  // namespace muster
