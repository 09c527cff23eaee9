#ifndef PS_CLIENT_ROW_PLAN_H_
#define PS_CLIENT_ROW_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// The rows of a lookup or a sparse update, sorted and without duplicates. Each
// row is then sent once, the rows of a shard are contiguous, and servers access
// memory in one direction.
//
// Reuses its memory from call to call. Not thread-safe.
class RowPlan {
 public:
  // `indices` is int32 or int64 of any shape.
  //   kInvalidArgument  another dtype, or an index is not in [0, row_count);
  //                     names `variable`
  absl::Status Compute(absl::string_view variable, const Tensor& indices,
                       int64_t row_count);

  // True if the indices were in increasing order without duplicates: rows() is
  // then the input, and no row has to move.
  bool is_in_order() const { return is_in_order_; }

  // The distinct rows in increasing order.
  absl::Span<const int64_t> rows() const { return rows_; }

  // All positions of the input, sorted by row and then by position.
  absl::Span<const int32_t> order() const { return order_; }
  // For each entry of order(), the position of its row in rows().
  absl::Span<const int32_t> row_of() const { return row_of_; }

  // Sets out[p] = fetched[r] for each position p of the input, where r is the
  // position of its row in rows(). `fetched` has one row for each entry of
  // rows().
  void Spread(const uint8_t* fetched, size_t row_bytes, uint8_t* out) const;

  // Writes one row to `sums` for each entry of rows(): the sum of the rows of
  // `values` (float32 or float64) with that index, added in the order of the
  // input. `sums` must have room for them.
  void Sum(const Tensor& values, int64_t row_elements, Tensor* sums) const;

  // Copies the rows of `values` to `permuted` in the order of order(). Each row
  // has `row_bytes`; both tensors have the same size.
  void Permute(const Tensor& values, size_t row_bytes, Tensor* permuted) const;

 private:
  void Sort();

  bool is_in_order_ = true;
  std::vector<int64_t> rows_;
  std::vector<int32_t> order_;
  std::vector<int32_t> row_of_;
  std::vector<int64_t> indices_;      // The input as int64.
  std::vector<int32_t> order_spare_;  // Scratch memory of Sort().
};

}  // namespace muster

#endif  // PS_CLIENT_ROW_PLAN_H_
