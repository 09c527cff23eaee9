#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_ROW_GATHER_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_ROW_GATHER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/net/collectives/communicator.h"

namespace muster {

// Gathers the updates of all replicas for some rows of one variable, in rank
// order: indices with values. Their number may differ between replicas. Rows
// that several replicas update stay separate.
//
// Keeps its memory from step to step. Not thread-safe.
//
// Equivalent to: all-gather of tf.IndexedSlices, without padding.
class RowGather {
 public:
  // `variable` has rows; `communicator` is borrowed.
  RowGather(std::string name, const TensorType& variable,
            Communicator* communicator, absl::Duration timeout);

  // Discards the added rows.
  void Clear();

  // `indices` is int32 or int64 of any shape, `values` one row for each. Rows
  // are multiplied by `scale`, which is 1 unless the variable is floating.
  //   kInvalidArgument  types do not fit the variable
  absl::Status Add(const Tensor& indices, const Tensor& values, double scale);

  // Exchanges the added rows. A collective; errors are those of the
  // communicator.
  absl::Status Gather();

  // Valid from Gather() to Clear(): int64 [n] and [n, row...].
  const Tensor& indices() const { return indices_; }
  const Tensor& values() const { return values_; }

  // The number of replicas that have called Add() since Clear().
  int contributor_count() const { return contributor_count_; }

  // Multiplies all values, or divides integers by 1 / `scale`.
  void Scale(double scale);

 private:
  // Memory that grows and never shrinks.
  struct Rows {
    int64_t row_count_max = 0;
    std::shared_ptr<Buffer> indices;
    std::shared_ptr<Buffer> values;
  };

  size_t row_bytes() const { return row_elements_ * SizeOf(dtype_); }
  // Keeps the first `kept_count` rows.
  void Reserve(int64_t row_count, int64_t kept_count, Rows* rows) const;
  void ShowRows(const Rows& rows, int64_t row_count);
  absl::Status ExchangeCounts();

  const std::string name_;
  const DType dtype_;
  const Shape variable_shape_;
  const int64_t row_elements_;
  Communicator* const communicator_;
  const absl::Duration timeout_;

  Rows own_;
  int64_t own_count_ = 0;
  bool contributes_ = false;
  Rows all_;
  // {row count, 1 if it contributes}, by rank.
  std::vector<int64_t> counts_;
  std::vector<int64_t> counts_per_rank_;  // Elements in counts_: 2 each.
  std::vector<int64_t> index_counts_;     // By rank: number of elements.
  std::vector<int64_t> value_counts_;
  int contributor_count_ = 0;
  Tensor indices_;
  Tensor values_;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_ROW_GATHER_H_
