#ifndef PS_CLIENT_PARTITIONER_H_
#define PS_CLIENT_PARTITIONER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"

namespace muster {

// Decides into how many shards a variable is split, along its outermost
// dimension. Names, defaults and formulas are those of
// tf.distribute.experimental.partitioners.
//
// Thread-safe: immutable.
class Partitioner {
 public:
  virtual ~Partitioner() = default;

  // Returns a number from 1 to the number of rows. A variable without rows or
  // of rank 0 is always one shard. `shape` must be fully known.
  int64_t ShardCount(const Shape& shape, DType dtype) const;

 private:
  // `row_count` > 0; `row_bytes` may be 0.
  virtual int64_t ShardCountFor(int64_t row_count, int64_t row_bytes) const = 0;
};

// Always `shard_count` shards, or one shard a row if there are fewer rows.
//   kInvalidArgument  shard_count < 1
absl::StatusOr<std::unique_ptr<Partitioner>> MakeFixedShardsPartitioner(
    int64_t shard_count);

struct MinSizePartitionerOptions {
  int64_t min_shard_bytes = 256 << 10;
  int64_t max_shards = 1;  // As in TensorFlow: 1 does not shard.
};
// One shard for each `min_shard_bytes` of the variable, rounded up, but at most
// `max_shards` shards and one shard a row.
//   kInvalidArgument  an option is below 1
absl::StatusOr<std::unique_ptr<Partitioner>> MakeMinSizePartitioner(
    const MinSizePartitionerOptions& options);

struct MaxSizePartitionerOptions {
  int64_t max_shard_bytes = 0;
  int64_t max_shards = 0;  // 0: no limit.
};
// The smallest number of shards that hold at most `max_shard_bytes` each,
// limited by `max_shards`. A row is never split.
//   kInvalidArgument  max_shard_bytes is below 1, or max_shards below 0
absl::StatusOr<std::unique_ptr<Partitioner>> MakeMaxSizePartitioner(
    const MaxSizePartitionerOptions& options);

}  // namespace muster

#endif  // PS_CLIENT_PARTITIONER_H_
