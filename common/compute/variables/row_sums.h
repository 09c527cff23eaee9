#ifndef COMMON_COMPUTE_VARIABLES_ROW_SUMS_H_
#define COMMON_COMPUTE_VARIABLES_ROW_SUMS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// A sparse gradient that names each row once. Repeated rows are summed in the
// order of the indices, so the result is a function of the input alone.
//
// Keeps its memory between calls. Not thread-safe.
class RowSums {
 public:
  // `indices` is int32 or int64 of any shape, `values` float32 or float64 of
  // type [indices..., row...]. The caller must not change either while it uses
  // the result. The result is valid until the next call.
  void Compute(const Tensor& indices, const Tensor& values);

  // The rows in order of first occurrence.
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
  std::vector<int32_t> row_of_;      // For each index: its position in rows_.
  std::vector<int32_t> table_;       // Hash table of positions in rows_, or -1.
  Tensor sums_;                      // At least rows_.size() rows.
  const uint8_t* values_ = nullptr;  // Into sums_, or the caller's values.
};

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_ROW_SUMS_H_
