#include "ps/client/row_plan.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"
#include "common/core/tensor/dtype.h"

namespace muster {
namespace {

constexpr int kDigitBits = 11;
constexpr size_t kDigitCount = size_t{1} << kDigitBits;

// Copies int32 or int64 row numbers to a vector of int64.
void CopyIndices(const Tensor& indices, std::vector<int64_t>* out) {
  if (indices.dtype() == DType::kInt32) {
    const auto flat = indices.flat<int32_t>();
    out->assign(flat.begin(), flat.end());
  } else {
    const auto flat = indices.flat<int64_t>();
    out->assign(flat.begin(), flat.end());
  }
}

}  // namespace

absl::Status RowPlan::Compute(absl::string_view variable, const Tensor& indices,
                              int64_t row_count) {
  if (indices.dtype() != DType::kInt32 && indices.dtype() != DType::kInt64) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rows of variable \"", variable, "\" are named by int32 or int64; got ",
        indices.type().ToString()));
  }
  if (indices.element_count() > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat(indices.element_count(), " rows of variable \"", variable,
                     "\" exceed the limit of one step, ",
                     std::numeric_limits<int32_t>::max()));
  }
  CopyIndices(indices, &indices_);
  is_in_order_ = true;
  int64_t before = -1;
  for (int64_t row : indices_) {
    if (row < 0 || row >= row_count) {
      return absl::InvalidArgumentError(
          absl::StrCat("row ", row, " of variable \"", variable,
                       "\" does not exist; it has ", row_count, " rows"));
    }
    is_in_order_ = is_in_order_ && row > before;
    before = row;
  }
  order_.resize(indices_.size());
  std::iota(order_.begin(), order_.end(), 0);
  row_of_.resize(indices_.size());
  if (is_in_order_) {
    rows_ = indices_;
    std::iota(row_of_.begin(), row_of_.end(), 0);
    return absl::OkStatus();
  }
  Sort();
  rows_.clear();
  for (size_t i = 0; i < order_.size(); ++i) {
    const int64_t row = indices_[order_[i]];
    if (rows_.empty() || rows_.back() != row) rows_.push_back(row);
    row_of_[i] = static_cast<int32_t>(rows_.size()) - 1;
  }
  return absl::OkStatus();
}

// A radix sort from the lowest digit. It is stable and, for the thousands of
// rows of a batch, several times as fast as a comparison sort.
void RowPlan::Sort() {
  const int64_t highest = *std::max_element(indices_.begin(), indices_.end());
  order_spare_.resize(order_.size());
  std::array<int32_t, kDigitCount> offsets;
  for (int shift = 0; shift < 64 && (highest >> shift) > 0;
       shift += kDigitBits) {
    const auto digit = [&](int32_t position) {
      return (indices_[position] >> shift) & (kDigitCount - 1);
    };
    offsets.fill(0);
    for (int32_t position : order_) ++offsets[digit(position)];
    std::exclusive_scan(offsets.begin(), offsets.end(), offsets.begin(), 0);
    for (int32_t position : order_) {
      order_spare_[offsets[digit(position)]++] = position;
    }
    order_.swap(order_spare_);
  }
}

void RowPlan::Spread(const uint8_t* fetched, size_t row_bytes,
                     uint8_t* out) const {
  if (is_in_order_) {
    if (!rows_.empty()) std::memcpy(out, fetched, rows_.size() * row_bytes);
    return;
  }
  for (size_t i = 0; i < order_.size(); ++i) {
    std::memcpy(out + order_[i] * row_bytes, fetched + row_of_[i] * row_bytes,
                row_bytes);
  }
}

void RowPlan::Sum(const Tensor& values, int64_t row_elements,
                  Tensor* sums) const {
  VisitNumber(values.dtype(), [&]<typename T>() {
    if constexpr (std::is_floating_point_v<T>) {
      const T* const from = values.flat<T>().data();
      T* const to = sums->mutable_flat<T>().data();
      int32_t filled = -1;
      for (size_t i = 0; i < order_.size(); ++i) {
        const T* const row = from + order_[i] * row_elements;
        T* const sum = to + row_of_[i] * row_elements;
        if (row_of_[i] != filled) {
          std::copy(row, row + row_elements, sum);
          filled = row_of_[i];
        } else {
          for (int64_t k = 0; k < row_elements; ++k) sum[k] += row[k];
        }
      }
    }
  });
}

void RowPlan::Permute(const Tensor& values, size_t row_bytes,
                      Tensor* permuted) const {
  for (size_t i = 0; i < order_.size(); ++i) {
    std::memcpy(permuted->mutable_raw_data() + i * row_bytes,
                values.raw_data() + order_[i] * row_bytes, row_bytes);
  }
}

}  // namespace muster
