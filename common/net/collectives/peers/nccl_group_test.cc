// Peer groups whose replicas are on simulated GPUs.
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/device.h"
#include "common/core/system/clock.h"
#include "common/core/system/testing/await_true.h"
#include "common/core/tensor/buffer.h"
#include "common/net/collectives/communication_implementation.h"
#include "common/net/collectives/device_communicator.h"
#include "common/net/collectives/nccl/fake/fake_gpus.h"
#include "common/net/collectives/nccl/nccl_api.h"
#include "common/net/collectives/peers/peer_group.h"
#include "common/net/collectives/peers/testing/peer_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

class NcclGroupTest : public PeerGroupTest {
 protected:
  // Gives every replica its own GPU.
  std::vector<PeerGroup::Options> GpuOptions(int replicas_per_task) {
    std::vector<PeerGroup::Options> all = AllOptions();
    int next = 0;
    for (PeerGroup::Options& options : all) {
      options.replicas_per_task = replicas_per_task;
      options.transports.nccl = &gpus_.nccl().api();
      for (int i = 0; i < replicas_per_task; ++i) {
        options.transports.devices.push_back(gpus_.device(next++));
      }
    }
    return all;
  }

  FakeGpus gpus_{4};
};

TEST_F(NcclGroupTest, AutoChoosesNcclAndSaysWhy) {
  MakeCluster(2);
  const Groups groups = JoinAll(GpuOptions(2));
  ASSERT_EQ(groups.size(), 2);
  EXPECT_EQ(groups[0]->Describe(), "2 workers, 4 replicas; NCCL");
  EXPECT_THAT(lines_[0].text(),
              HasSubstr("AUTO chose NCCL because every rank has a GPU of its "
                        "own and NCCL 2.28.9"));
  EXPECT_EQ(groups[1]->communicator(0)->generation(), groups[1]->generation());
  ExpectSums(groups, 2);
  LeaveAll(groups);
}

TEST_F(NcclGroupTest, ReplicasOfOneTaskUseNccl) {
  MakeCluster(1);
  const Groups groups = JoinAll(GpuOptions(2));
  ASSERT_EQ(groups.size(), 1);
  EXPECT_EQ(groups[0]->communicator(1)->transport(), "NCCL 2.28.9");
  ExpectSums(groups, 2);
  LeaveAll(groups);
}

TEST_F(NcclGroupTest, FallsBackIfNcclCannotConnect) {
  MakeCluster(2);
  gpus_.nccl().Fail("ncclCommInitRankConfig", nccl::kSystemError);
  std::vector<PeerGroup::Options> all = GpuOptions(1);
  for (auto& options : all) options.connect_timeout = absl::Seconds(2);
  const Groups groups = JoinAll(all);
  ASSERT_EQ(groups.size(), 2);
  EXPECT_THAT(groups[0]->Describe(), HasSubstr("RING over shared memory"));
  EXPECT_THAT(lines_[0].text(),
              AllOf(HasSubstr("NCCL was left out: it could not connect"),
                    HasSubstr("ncclCommInitRankConfig")));
  ExpectSums(groups);
  LeaveAll(groups);
}

TEST_F(NcclGroupTest, ATaskThatLacksAGpuIsNamedIfNcclIsRequired) {
  MakeCluster(2);
  std::vector<PeerGroup::Options> all = GpuOptions(1);
  for (auto& options : all) {
    options.implementation = CommunicationImplementation::kNccl;
    options.implementation_is_required = true;
  }
  all[1].transports.devices.clear();
  // Worker 1 fails at once.
  EXPECT_THAT(Join(all[1]),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("worker 1"), HasSubstr("NCCL"),
                             HasSubstr("computes on a CPU"))));
  // The leader fails when worker 1 has connected.
  all[1].implementation_is_required = false;
  const auto joined = TryJoinAll(all);
  EXPECT_THAT(joined[0], StatusIs(absl::StatusCode::kUnimplemented,
                                  AllOf(HasSubstr("rank 1 computes on a CPU"),
                                        HasSubstr("NCCL"))));
  EXPECT_FALSE(joined[1].ok());
}

// NCCL itself would wait forever.
TEST_F(NcclGroupTest, ATaskThatFailsEndsTheCollectivesOfTheOthers) {
  MakeCluster(2);
  const Groups groups = JoinAll(GpuOptions(1));
  ASSERT_EQ(groups.size(), 2);
  // Work enqueued after the collectives reads 1 from these words and does
  // nothing.
  std::vector<std::shared_ptr<Buffer>> end_words;
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_OK_AND_ASSIGN(
        end_words.emplace_back(),
        gpus_.device(rank)->pinned_memory().Allocate(sizeof(int32_t)));
    std::memset(end_words[rank]->data(), 0, sizeof(int32_t));
    groups[rank]->communicator(0)->on_device()->UseEndWord(end_words[rank]);
  }
  gpus_.nccl().FailCollective(nccl::kSuccess);
  std::vector<absl::Status> statuses(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back(
        [&, rank] { statuses[rank] = AllReduce(*groups[rank]); });
  }
  EXPECT_TRUE(AwaitTrue([&] {
    return gpus_.nccl().counts()["ncclAllReduce"] == 2;
  })) << "workers 0 and 1 have not both called";
  groups[0]->Fail(absl::DataLossError("a shard is damaged"));
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(statuses, Each(StatusIs(absl::StatusCode::kDataLoss,
                                      HasSubstr("a shard is damaged"))));
  // NCCL's threads set the words, possibly after the callers have received the
  // error.
  for (const std::shared_ptr<Buffer>& word : end_words) {
    std::atomic_ref<int32_t> value(*reinterpret_cast<int32_t*>(word->data()));
    EXPECT_TRUE(AwaitTrue([&] { return value.load() != 0; }));
    EXPECT_EQ(value.load(), 1);
  }
}

}  // namespace
}  // namespace muster
