// A newer coordinator of a job takes over its running workers and servers.

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/rpc/channel.h"
#include "common/net/rpc/network.h"
#include "coordinator/closure_id_reservation.h"
#include "coordinator/cluster_connection.h"
#include "coordinator/cluster_coordinator.h"
#include "coordinator/parameter_server_strategy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/parameter_server.pb.h"
#include "ps/client/methods.h"
#include "tests/cluster/counters.h"
#include "tests/cluster/test_cluster.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kJob[] = "job";

absl::Time Soon() { return absl::Now() + absl::Seconds(120); }

class NewerCoordinatorTest : public testing::Test {
 protected:
  // Connects coordinator `epoch` of the job. Its closures are numbered above
  // those of its predecessors.
  absl::StatusOr<std::unique_ptr<ParameterServerStrategy>> Connect(
      uint64_t epoch) {
    ClusterConnection::Options options;
    options.job_id = kJob;
    options.coordinator_epoch = epoch;
    options.closure_ids = {.first_id = reserved_limit_,
                           .record = [this](uint64_t limit) {
                             reserved_limit_ = limit;
                             return absl::OkStatus();
                           }};
    ASSIGN_OR_RETURN(auto strategy, cluster_.Connect(options));
    // Finds the variables that the servers hold already.
    RETURN_IF_ERROR(CreateCounters(strategy->variables()));
    return strategy;
  }

  static absl::Status Count(ParameterServerStrategy& strategy, int count) {
    ClusterCoordinator coordinator(strategy);
    const Function step = CountingStep();
    for (int i = 0; i < count; ++i) {
      RETURN_IF_ERROR(coordinator.Schedule(step, {}).status());
    }
    return coordinator.Join(Soon());
  }

  uint64_t reserved_limit_ = 1;
  TestCluster cluster_{2, 2};
};

TEST_F(NewerCoordinatorTest, NoPushIsLostOrRepeated) {
  for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
    ASSERT_OK_AND_ASSIGN(const auto strategy, Connect(epoch));
    ASSERT_OK(Count(*strategy, 100));
    EXPECT_OK(ExpectCounted(strategy->variables(), 100 * epoch));
    EXPECT_EQ(reserved_limit_, 1 + epoch * ClosureIdReservation::kBlockSize);
  }
}

TEST_F(NewerCoordinatorTest, TheEarlierOneEndsAndCannotEndTheJob) {
  ASSERT_OK_AND_ASSIGN(const auto earlier, Connect(1));
  ASSERT_OK(Count(*earlier, 50));
  ASSERT_OK_AND_ASSIGN(const auto newer, Connect(2));
  const absl::Status ended = Count(*earlier, 50);
  EXPECT_THAT(ended, StatusIs(absl::StatusCode::kAborted,
                              AllOf(HasSubstr("newer coordinator"),
                                    HasSubstr("works for coordinator epoch 2"),
                                    HasSubstr("asked for epoch 1"))));
  earlier->connection()->EndJob(ended);
  ASSERT_OK(Count(*newer, 50));
  EXPECT_OK(ExpectCounted(newer->variables(), 100));
}

TEST_F(NewerCoordinatorTest, AnEarlierOneCannotStart) {
  ASSERT_OK_AND_ASSIGN(const auto newer, Connect(2));
  ASSERT_OK(Count(*newer, 50));
  EXPECT_THAT(Connect(1),
              StatusIs(absl::StatusCode::kAborted,
                       AllOf(HasSubstr("works for coordinator epoch 2"),
                             HasSubstr("asked for epoch 1"))));
  ASSERT_OK(Count(*newer, 50));
  EXPECT_OK(ExpectCounted(newer->variables(), 100));
}

// The workers still follow the earlier coordinator. One server has heard of a
// newer one.
TEST_F(NewerCoordinatorTest, OneServerStopsTheEarlierOne) {
  ASSERT_OK_AND_ASSIGN(const auto earlier, Connect(1));
  ASSERT_OK(Count(*earlier, 50));
  const std::unique_ptr<Channel> channel = Network::Grpc()->Connect(
      {.address = cluster_.server(0).address(),
       .peer_task_type = "ps",
       .caller = {.task_type = "chief", .incarnation = 7},
       .job_id = kJob,
       .coordinator_epoch = 2});
  ASSERT_OK(channel->Call<proto::DescribeResponse>(
      kDescribeMethod, proto::DescribeRequest(),
      {.timeout = absl::Seconds(60)}));
  EXPECT_THAT(Count(*earlier, 50).message(),
              AllOf(HasSubstr("works for coordinator epoch 2"),
                    HasSubstr("asked for epoch 1")));
}

}  // namespace
}  // namespace muster
