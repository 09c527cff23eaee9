#include "ps/client/partitioner.h"

#include <memory>

#include "common/core/base/testing/status_matchers.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

int64_t MinSize(const Shape& shape, int64_t min_shard_bytes,
                int64_t max_shards) {
  return MakeMinSizePartitioner(
             {.min_shard_bytes = min_shard_bytes, .max_shards = max_shards})
      .value()
      ->ShardCount(shape, DType::kFloat32);
}

int64_t MaxSize(const Shape& shape, int64_t max_shard_bytes,
                int64_t max_shards) {
  return MakeMaxSizePartitioner(
             {.max_shard_bytes = max_shard_bytes, .max_shards = max_shards})
      .value()
      ->ShardCount(shape, DType::kFloat32);
}

TEST(PartitionerTest, FixedShardsAreNeverMoreThanRows) {
  const auto partitioner = MakeFixedShardsPartitioner(3).value();
  EXPECT_EQ(partitioner->ShardCount(Shape({10, 4}), DType::kFloat32), 3);
  EXPECT_EQ(partitioner->ShardCount(Shape({2, 4}), DType::kFloat32), 2);
}

TEST(PartitionerTest, ScalarsAndEmptyVariablesAreNotSharded) {
  const auto partitioner = MakeFixedShardsPartitioner(3).value();
  EXPECT_EQ(partitioner->ShardCount(Shape(), DType::kFloat32), 1);
  EXPECT_EQ(partitioner->ShardCount(Shape({0, 4}), DType::kFloat32), 1);
}

// The numbers come from TensorFlow's sharded_variable_test.
TEST(PartitionerTest, MinSizeShardsLikeTensorFlow) {
  EXPECT_EQ(MinSize(Shape({2, 1}), 4, 2), 2);
  EXPECT_EQ(MinSize(Shape({6, 1}), 4, 6), 6);
  EXPECT_EQ(MinSize(Shape({6, 1}), 8, 10), 3);
  EXPECT_EQ(MinSize(Shape({6, 1}), 4, 3), 3);
  EXPECT_EQ(MinSize(Shape({6, 1}), 1000, 10), 1);
}

TEST(PartitionerTest, MaxSizeShardsLikeTensorFlow) {
  EXPECT_EQ(MaxSize(Shape({6, 1}), 4, 0), 6);
  EXPECT_EQ(MaxSize(Shape({6, 1}), 8, 0), 3);
  EXPECT_EQ(MaxSize(Shape({6, 1}), 8, 2), 2);
  EXPECT_EQ(MaxSize(Shape({6, 1}), 1024, 0), 1);
  // A row larger than the limit is still one shard.
  EXPECT_EQ(MaxSize(Shape({3, 100}), 8, 0), 3);
}

TEST(PartitionerTest, TheMinSizeDefaultDoesNotShard) {
  EXPECT_EQ(MakeMinSizePartitioner({}).value()->ShardCount(Shape({1 << 20, 64}),
                                                           DType::kFloat32),
            1);
}

TEST(PartitionerTest, OptionsBelowOneAreNamed) {
  EXPECT_THAT(MakeFixedShardsPartitioner(0),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("num_shards is 0")));
  EXPECT_THAT(MakeMinSizePartitioner({.min_shard_bytes = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("min_shard_bytes is 0")));
  EXPECT_THAT(MakeMinSizePartitioner({.max_shards = -1}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("max_shards is -1")));
  EXPECT_THAT(MakeMaxSizePartitioner({}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("max_shard_bytes is 0")));
}

}  // namespace
}  // namespace muster
