#ifndef PS_CLIENT_ROW_PLAN_H_
#define PS_CLIENT_ROW_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// The rows that a lookup or a sparse update names, put in order: so that each
// travels once, shards are runs, and servers walk through memory in one
// direction.
//
// Keeps its memory between calls. Not thread-safe.
class RowPlan {
 public:
  // `indices` is int32 or int64 of any shape.
  //   kInvalidArgument  another dtype, or an index is not in [0, row_count);
  //                     names `variable`
  absl::Status Compute(absl::string_view variable, const Tensor& indices,
                       int64_t row_count);

  // The indices rose already and none repeated: rows() is the input, and
  // nothing has to move.
  bool is_in_order() const { return is_in_order_; }

  // Each row once, rising.
  absl::Span<const int64_t> rows() const { return rows_; }

  // All positions of the input, by row and then by position...
  absl::Span<const int32_t> order() const { return order_; }
  // ... and for each of those its row's position in rows().
  absl::Span<const int32_t> row_of() const { return row_of_; }

  // out[position] = fetched[its row], for all positions of the input. `fetched`
  // has one row for each of rows().
  void Spread(const uint8_t* fetched, size_t row_bytes, uint8_t* out) const;

  // `sums` gets one row for each of rows(), for which it has room: the sum of
  // the rows of `values` (float32 or float64) that belong to it, added in the
  // order in which they came.
  void Sum(const Tensor& values, int64_t row_elements, Tensor* sums) const;

  // `permuted`, of the same size, gets the rows of `values`, which is `count`
  // rows of `row_bytes`, by order().
  void Permute(const Tensor& values, size_t row_bytes, Tensor* permuted) const;

 private:
  void Sort();

  bool is_in_order_ = true;
  std::vector<int64_t> rows_;
  std::vector<int32_t> order_;
  std::vector<int32_t> row_of_;
  std::vector<int64_t> indices_;      // The input.
  std::vector<int32_t> order_spare_;  // For sorting.
};

}  // namespace muster

#endif  // PS_CLIENT_ROW_PLAN_H_
