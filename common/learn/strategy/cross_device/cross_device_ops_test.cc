#include "common/learn/strategy/cross_device/cross_device_ops.h"

#include <memory>
#include <string>
#include <vector>

#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/cross_device/distributed_values.h"
#include "common/net/collectives/reduce_op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::shared_ptr<const CrossDeviceOps>> AllKinds() {
  std::vector<std::shared_ptr<const CrossDeviceOps>> kinds = {
      ReductionToOneDevice()};
  for (const int num_packs : {0, 1, 3, 100}) {
    kinds.push_back(
        HierarchicalCopyAllReduce({.num_packs = num_packs}).value());
    kinds.push_back(NcclAllReduce({.num_packs = num_packs}).value());
  }
  return kinds;
}

Tensor Floats(const std::vector<float>& values) {
  return Tensor::FromSpan<float>({static_cast<int64_t>(values.size())}, values);
}

std::vector<float> Values(const Tensor& tensor) {
  const auto flat = tensor.flat<float>();
  return {flat.begin(), flat.end()};
}

// Returns {r + 1, 10 * (r + 1)} for replica r.
PerReplica Multiples(int replica_count) {
  std::vector<Tensor> values;
  for (int r = 1; r <= replica_count; ++r) {
    values.push_back(
        Floats({static_cast<float>(r), static_cast<float>(10 * r)}));
  }
  return PerReplica(values);
}

TEST(CrossDeviceOpsTest, EveryKindReducesAlike) {
  for (const auto& ops : AllKinds()) {
    SCOPED_TRACE(std::string(ops->name()));
    for (const auto& [count, sum] :
         {std::pair{1, 1.0f}, {2, 3.0f}, {3, 6.0f}, {4, 10.0f}, {7, 28.0f}}) {
      const PerReplica values = Multiples(count);
      ASSERT_OK_AND_ASSIGN(const Tensor reduced,
                           ops->Reduce(ReduceOp::kSum, values, count));
      EXPECT_THAT(Values(reduced), ElementsAre(sum, 10 * sum));
      ASSERT_OK_AND_ASSIGN(const Tensor mean,
                           ops->Reduce(ReduceOp::kMean, values, count));
      EXPECT_THAT(Values(mean), ElementsAre(sum / count, 10 * sum / count));
    }
  }
}

TEST(CrossDeviceOpsTest, BatchReduceEqualsReduceOfEach) {
  std::vector<PerReplica> batch;
  for (const int64_t size : {5, 0, 1, 8}) {
    std::vector<Tensor> floats;
    std::vector<Tensor> integers;
    for (int r = 0; r < 5; ++r) {
      floats.push_back(Tensor(DType::kFloat32, {size}));
      integers.push_back(Tensor(DType::kInt64, {size, 1}));
      for (int64_t i = 0; i < size; ++i) {
        floats[r].mutable_flat<float>()[i] = static_cast<float>(i + r);
        integers[r].mutable_flat<int64_t>()[i] = size * i - r;
      }
    }
    batch.push_back(PerReplica(floats));
    batch.push_back(PerReplica(integers));
  }
  for (const auto& ops : AllKinds()) {
    SCOPED_TRACE(std::string(ops->name()));
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> reduced,
                         ops->BatchReduce(ReduceOp::kSum, batch, 5));
    ASSERT_EQ(reduced.size(), batch.size());
    for (size_t i = 0; i < batch.size(); ++i) {
      ASSERT_OK_AND_ASSIGN(const Tensor alone,
                           ops->Reduce(ReduceOp::kSum, batch[i], 5));
      EXPECT_TRUE(BitwiseEqual(reduced[i], alone)) << i;
    }
  }
}

TEST(CrossDeviceOpsTest, OneValueForAllIsItsOwnMeanAndHasNoSum) {
  const auto ops = ReductionToOneDevice();
  const Tensor five = Floats({5});
  EXPECT_THAT(Values(ops->Reduce(ReduceOp::kMean, five, 3).value()),
              ElementsAre(5));
  EXPECT_THAT(Values(ops->Reduce(ReduceOp::kSum, five, 1).value()),
              ElementsAre(5));
  EXPECT_THAT(Values(ops->Reduce(ReduceOp::kSum, Floats({0}), 3).value()),
              ElementsAre(0));
  EXPECT_THAT(ops->Reduce(ReduceOp::kSum, five, 3),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("3 replicas"), HasSubstr("once"))));
}

TEST(CrossDeviceOpsTest, MismatchedValuesAreRejected) {
  for (const auto& ops : AllKinds()) {
    const PerReplica uneven({Floats({1}), Floats({1, 2})});
    EXPECT_THAT(ops->Reduce(ReduceOp::kSum, uneven, 2),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("replica 1 has float32[2]")));
    EXPECT_THAT(ops->BatchReduce(ReduceOp::kSum, {uneven}, 2),
                StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(ops->Reduce(ReduceOp::kSum, Multiples(2), 3),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("of 2 replicas")));
    const PerReplica bools({Tensor::Scalar(true), Tensor::Scalar(false)});
    EXPECT_THAT(ops->Reduce(ReduceOp::kSum, bools, 2),
                StatusIs(absl::StatusCode::kUnimplemented));
  }
}

TEST(CrossDeviceOpsTest, BroadcastGivesEachReplicaItsOwn) {
  const PerReplica copies = ReductionToOneDevice()->Broadcast(Floats({7}), 3);
  ASSERT_EQ(copies.size(), 3);
  for (int r = 0; r < 3; ++r) {
    EXPECT_THAT(Values(copies[r]), ElementsAre(7));
    EXPECT_TRUE(copies[r].IsSoleOwner());
  }
}

TEST(CrossDeviceOpsTest, ANegativeNumberOfPacksIsRefused) {
  EXPECT_THAT(HierarchicalCopyAllReduce({.num_packs = -1}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("HierarchicalCopyAllReduce: num_packs is "
                                 "-1")));
  EXPECT_THAT(NcclAllReduce({.num_packs = -2}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace muster
