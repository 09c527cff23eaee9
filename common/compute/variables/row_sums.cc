#include "common/compute/variables/row_sums.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "common/core/base/check.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"

namespace muster {

void RowSums::FindRows(const Tensor& indices) {
  const size_t count = static_cast<size_t>(indices.element_count());
  MUSTER_CHECK(count < (size_t{1} << 30));
  rows_.clear();
  row_of_.resize(count);
  const size_t table_size = std::bit_ceil(2 * count + 1);
  table_.assign(table_size, -1);
  const int shift = 64 - std::countr_zero(table_size);
  const auto find = [&](int64_t index) {
    uint64_t place =
        (static_cast<uint64_t>(index) * 0x9E3779B97F4A7C15) >> shift;
    while (true) {
      const int32_t position = table_[place];
      if (position < 0) {
        table_[place] = static_cast<int32_t>(rows_.size());
        rows_.push_back(index);
        return table_[place];
      }
      if (rows_[position] == index) return position;
      place = (place + 1) & (table_size - 1);
    }
  };
  if (indices.dtype() == DType::kInt32) {
    const auto flat = indices.flat<int32_t>();
    for (size_t i = 0; i < count; ++i) row_of_[i] = find(flat[i]);
  } else {
    const auto flat = indices.flat<int64_t>();
    for (size_t i = 0; i < count; ++i) row_of_[i] = find(flat[i]);
  }
}

template <typename T>
void RowSums::Sum(const Tensor& values, int64_t row_elements) {
  const int64_t element_count =
      static_cast<int64_t>(rows_.size()) * row_elements;
  if (!sums_.IsValid() || sums_.dtype() != values.dtype() ||
      sums_.element_count() < element_count) {
    sums_ = Tensor(values.dtype(), Shape({element_count}));
  }
  T* const sums = sums_.mutable_flat<T>().data();
  const T* value = values.flat<T>().data();
  int32_t seen = 0;
  for (const int32_t row : row_of_) {
    T* const sum = sums + row * row_elements;
    if (row == seen) {  // Rows are numbered in order of first occurrence.
      std::copy(value, value + row_elements, sum);
      ++seen;
    } else {
      for (int64_t i = 0; i < row_elements; ++i) sum[i] += value[i];
    }
    value += row_elements;
  }
}

void RowSums::Compute(const Tensor& indices, const Tensor& values) {
  FindRows(indices);
  if (rows_.size() == row_of_.size()) {
    values_ = values.raw_data();
    return;
  }
  const int64_t row_elements = values.element_count() / indices.element_count();
  if (values.dtype() == DType::kFloat32) {
    Sum<float>(values, row_elements);
  } else {
    Sum<double>(values, row_elements);
  }
  values_ = sums_.raw_data();
}

}  // namespace muster
