#include "ps/client/partitioner.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

int64_t CeilDivide(int64_t a, int64_t b) { return a / b + (a % b != 0); }

absl::Status CheckAtLeast(absl::string_view partitioner, absl::string_view name,
                          int64_t value, int64_t minimum) {
  if (value >= minimum) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(partitioner, ": ", name, " is ", value,
                   "; expected a number from ", minimum, " on"));
}

class FixedShardsPartitioner final : public Partitioner {
 public:
  explicit FixedShardsPartitioner(int64_t shard_count)
      : shard_count_(shard_count) {}

 private:
  int64_t ShardCountFor(int64_t row_count, int64_t) const override {
    return std::min(shard_count_, row_count);
  }
  const int64_t shard_count_;
};

class MinSizePartitioner final : public Partitioner {
 public:
  explicit MinSizePartitioner(const MinSizePartitionerOptions& options)
      : options_(options) {}

 private:
  int64_t ShardCountFor(int64_t row_count, int64_t row_bytes) const override {
    const int64_t by_size =
        CeilDivide(row_count * row_bytes, options_.min_shard_bytes);
    return std::max<int64_t>(
        1, std::min({row_count, options_.max_shards, by_size}));
  }
  const MinSizePartitionerOptions options_;
};

class MaxSizePartitioner final : public Partitioner {
 public:
  explicit MaxSizePartitioner(const MaxSizePartitionerOptions& options)
      : options_(options) {}

 private:
  int64_t ShardCountFor(int64_t row_count, int64_t row_bytes) const override {
    if (row_bytes == 0) return 1;
    const int64_t rows_per_shard =
        std::max<int64_t>(1, options_.max_shard_bytes / row_bytes);
    const int64_t shard_count = CeilDivide(row_count, rows_per_shard);
    return options_.max_shards == 0
               ? shard_count
               : std::min(shard_count, options_.max_shards);
  }
  const MaxSizePartitionerOptions options_;
};

}  // namespace

int64_t Partitioner::ShardCount(const Shape& shape, DType dtype) const {
  MUSTER_CHECK(shape.IsFullyKnown());
  if (shape.rank() == 0 || shape.dim(0) == 0) return 1;
  const int64_t row_elements = shape.ElementCountInRange(1, shape.rank());
  return ShardCountFor(shape.dim(0),
                       row_elements * static_cast<int64_t>(SizeOf(dtype)));
}

absl::StatusOr<std::unique_ptr<Partitioner>> MakeFixedShardsPartitioner(
    int64_t shard_count) {
  RETURN_IF_ERROR(
      CheckAtLeast("FixedShardsPartitioner", "num_shards", shard_count, 1));
  return std::make_unique<FixedShardsPartitioner>(shard_count);
}

absl::StatusOr<std::unique_ptr<Partitioner>> MakeMinSizePartitioner(
    const MinSizePartitionerOptions& options) {
  RETURN_IF_ERROR(CheckAtLeast("MinSizePartitioner", "min_shard_bytes",
                               options.min_shard_bytes, 1));
  RETURN_IF_ERROR(
      CheckAtLeast("MinSizePartitioner", "max_shards", options.max_shards, 1));
  return std::make_unique<MinSizePartitioner>(options);
}

absl::StatusOr<std::unique_ptr<Partitioner>> MakeMaxSizePartitioner(
    const MaxSizePartitionerOptions& options) {
  RETURN_IF_ERROR(CheckAtLeast("MaxSizePartitioner", "max_shard_bytes",
                               options.max_shard_bytes, 1));
  RETURN_IF_ERROR(
      CheckAtLeast("MaxSizePartitioner", "max_shards", options.max_shards, 0));
  return std::make_unique<MaxSizePartitioner>(options);
}

}  // namespace muster
