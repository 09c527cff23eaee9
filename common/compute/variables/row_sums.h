#ifndef COMMON_COMPUTE_VARIABLES_ROW_SUMS_H_
#define COMMON_COMPUTE_VARIABLES_ROW_SUMS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// A sparse gradient with each row named once: rows that repeat are summed, in
// the order in which they come, so the result is a function of the input alone.
//
// Keeps its memory between calls. Not thread-safe.
class RowSums {
 public:
  // `indices` is int32 or int64 of any shape, `values` float32 or float64 of
  // type [indices..., row...]. Both stay untouched while the result is used;
  // the result is good until the next call.
  void Compute(const Tensor& indices, const Tensor& values);

  // In the order in which they first came.
  absl::Span<const int64_t> rows() const { return rows_; }

  // The sums, row after row. T is the type of the values.
  template <typename T>
  const T* values() const {
    return reinterpret_cast<const T*>(values_);
  }

 private:
  void FindRows(const Tensor& indices);
  template <typename T>
  void Sum(const Tensor& values, int64_t row_elements);

  std::vector<int64_t> rows_;
  std::vector<int32_t> row_of_;      // Position in rows_ of each index.
  std::vector<int32_t> table_;       // Hash table of positions in rows_, or -1.
  Tensor sums_;                      // At least rows_.size() rows.
  const uint8_t* values_ = nullptr;  // Into sums_, or the caller's values.
};

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_ROW_SUMS_H_
