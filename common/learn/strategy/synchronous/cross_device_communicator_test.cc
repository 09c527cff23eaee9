#include "common/learn/strategy/synchronous/cross_device_communicator.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/strategy/cross_device/cross_device_ops.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/collectives/shm/shared_memory_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// In float32, 1e8 + 1 is 1e8, so a sum of these numbers depends on the order.
const std::vector<float> kAddends = {1e8f, 1, -1e8f, 1};

// Calls work(rank, communicator) on one thread per rank.
void RunRanks(
    const std::shared_ptr<const CrossDeviceOps>& ops, int size,
    const std::function<void(int rank, Communicator& communicator)>& work) {
  const auto group = ReduceBy(ops, CreateLocalGroup(size).value());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] { work(rank, *group[rank]); });
  }
  for (std::thread& thread : threads) thread.join();
}

// Returns each rank's result of an all-reduce of kAddends.
std::vector<float> SumsBy(const std::shared_ptr<const CrossDeviceOps>& ops) {
  std::vector<float> sums = kAddends;
  RunRanks(ops, 4, [&](int rank, Communicator& communicator) {
    EXPECT_OK(communicator.AllReduce(
        ReduceOp::kSum, {DType::kFloat32, 1, &sums[rank]}, {.name = "addend"}));
  });
  return sums;
}

TEST(CrossDeviceCommunicatorTest, ReducesInTheOrderOfTheOps) {
  EXPECT_THAT(SumsBy(ReductionToOneDevice()), Each(1));
  EXPECT_THAT(SumsBy(HierarchicalCopyAllReduce().value()), Each(0));
  EXPECT_THAT(SumsBy(NcclAllReduce().value()), Each(1));
}

TEST(CrossDeviceCommunicatorTest, CallsFollowEachOther) {
  constexpr int kSize = 3;
  constexpr int64_t kRounds = 200;
  RunRanks(
      HierarchicalCopyAllReduce({.num_packs = 2}).value(), kSize,
      [&](int rank, Communicator& communicator) {
        for (int64_t round = 0; round < kRounds; ++round) {
          std::vector<int64_t> values(round % 5, rank + round);
          EXPECT_OK(communicator.AllReduce(
              ReduceOp::kSum,
              {DType::kInt64, static_cast<int64_t>(values.size()),
               values.data()},
              {.name = "values"}));
          EXPECT_THAT(values, Each(3 + kSize * round));
          float mean = static_cast<float>(rank);
          EXPECT_OK(communicator.AllReduce(
              ReduceOp::kMean, {DType::kFloat32, 1, &mean}, {.name = "mean"}));
          EXPECT_EQ(mean, 1);
        }
      });
}

TEST(CrossDeviceCommunicatorTest, OtherCollectivesAreTheGroups) {
  RunRanks(ReductionToOneDevice(), 2, [](int rank, Communicator& communicator) {
    int32_t value = rank + 5;
    std::vector<int32_t> all(2);
    EXPECT_OK(communicator.AllGather({DType::kInt32, 1, &value}, {1, 1},
                                     {DType::kInt32, 2, all.data()},
                                     {.name = "all"}));
    EXPECT_THAT(all, ElementsAre(5, 6));
    EXPECT_OK(communicator.Broadcast({DType::kInt32, 1, &value}, 1,
                                     {.name = "value"}));
    EXPECT_EQ(value, 6);
    EXPECT_OK(communicator.Barrier({.name = "end"}));
  });
}

TEST(CrossDeviceCommunicatorTest, RanksThatDisagreeAreToldAndTheGroupEnds) {
  RunRanks(ReductionToOneDevice(), 2, [](int rank, Communicator& communicator) {
    std::vector<float> values(rank + 1);
    const auto reduce = [&] {
      return communicator.AllReduce(ReduceOp::kSum,
                                    {DType::kFloat32, rank + 1, values.data()},
                                    {.name = "w"});
    };
    EXPECT_THAT(reduce(), StatusIs(absl::StatusCode::kInvalidArgument,
                                   AllOf(HasSubstr("sum of 1 float32"),
                                         HasSubstr("sum of 2 float32"))));
    EXPECT_FALSE(reduce().ok());
  });
}

TEST(CrossDeviceCommunicatorTest, AnAbortEndsTheWait) {
  RunRanks(ReductionToOneDevice(), 2, [](int rank, Communicator& communicator) {
    float value = 1;
    if (rank == 1) {
      communicator.Abort(absl::CancelledError("enough"));
    }
    EXPECT_THAT(communicator
                    .AllReduce(ReduceOp::kSum, {DType::kFloat32, 1, &value},
                               {.name = "w"})
                    .message(),
                HasSubstr("enough"));
  });
}

}  // namespace
}  // namespace muster
