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

  // From 1 to the number of rows, except that a variable of no rows or of rank
  // 0 is always one shard. `shape` is fully known.
  int64_t ShardCount(const Shape& shape, DType dtype) const;

 private:
  // `row_count` > 0; `row_bytes` may be 0.
  virtual int64_t ShardCountFor(int64_t row_count, int64_t row_bytes) const = 0;
};

// Always `shard_count`, while there are rows enough.
//   kInvalidArgument  shard_count < 1
absl::StatusOr<std::unique_ptr<Partitioner>> MakeFixedShardsPartitioner(
    int64_t shard_count);

struct MinSizePartitionerOptions {
  int64_t min_shard_bytes = 256 << 10;
  int64_t max_shards = 1;  // As in TensorFlow: 1 does not shard.
};
// As many shards as hold at least `min_shard_bytes` each.
//   kInvalidArgument  an option is below 1
absl::StatusOr<std::unique_ptr<Partitioner>> MakeMinSizePartitioner(
    const MinSizePartitionerOptions& options);

struct MaxSizePartitionerOptions {
  int64_t max_shard_bytes = 0;
  int64_t max_shards = 0;  // 0: no limit.
};
// As few shards as hold at most `max_shard_bytes` each. A row is never split.
//   kInvalidArgument  max_shard_bytes is below 1, or max_shards below 0
absl::StatusOr<std::unique_ptr<Partitioner>> MakeMaxSizePartitioner(
    const MaxSizePartitionerOptions& options);

}  // namespace muster

#endif  // PS_CLIENT_PARTITIONER_H_
