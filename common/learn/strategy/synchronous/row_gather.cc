#include "common/learn/strategy/synchronous/row_gather.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/shape.h"
#include "common/learn/strategy/synchronous/scale_elements.h"
#include "common/net/collectives/tensor_span.h"

namespace muster {
namespace {

void CopyIndices(const Tensor& from, int64_t* to) {
  if (from.dtype() == DType::kInt64) {
    const absl::Span<const int64_t> indices = from.flat<int64_t>();
    std::copy(indices.begin(), indices.end(), to);
  } else {
    const absl::Span<const int32_t> indices = from.flat<int32_t>();
    std::copy(indices.begin(), indices.end(), to);
  }
}

}  // namespace

RowGather::RowGather(std::string name, const TensorType& variable,
                     Communicator* communicator, absl::Duration timeout)
    : name_(std::move(name)),
      dtype_(variable.dtype),
      variable_shape_(variable.shape),
      row_elements_(
          variable.shape.ElementCountInRange(1, variable.shape.rank())),
      communicator_(communicator),
      timeout_(timeout),
      counts_(2 * communicator->size()),
      counts_per_rank_(communicator->size(), 2),
      index_counts_(communicator->size()),
      value_counts_(communicator->size()) {
  Reserve(0, 0, &own_);
  Reserve(0, 0, &all_);
}

void RowGather::Clear() {
  own_count_ = 0;
  contributes_ = false;
}

void RowGather::Reserve(int64_t row_count, int64_t kept_count,
                        Rows* rows) const {
  if (rows->indices != nullptr && row_count <= rows->row_count_max) return;
  // Grows by half, so that a slowly growing number of rows does not allocate in
  // each step.
  const int64_t row_count_max = row_count + row_count / 2;
  auto indices = Buffer::Allocate(row_count_max * sizeof(int64_t));
  auto values = Buffer::Allocate(row_count_max * row_bytes());
  if (kept_count > 0) {
    std::memcpy(indices->data(), rows->indices->data(),
                kept_count * sizeof(int64_t));
    std::memcpy(values->data(), rows->values->data(), kept_count * row_bytes());
  }
  *rows = {row_count_max, std::move(indices), std::move(values)};
}

absl::Status RowGather::Add(const Tensor& indices, const Tensor& values,
                            double scale) {
  const int64_t count = indices.element_count();
  const bool fits =
      (indices.dtype() == DType::kInt32 || indices.dtype() == DType::kInt64) &&
      values.dtype() == dtype_ &&
      values.element_count() == count * row_elements_;
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable \"", name_, "\": rows are ", values.type().ToString(),
        " for indices ", indices.type().ToString(), "; the variable is ",
        TensorType{dtype_, variable_shape_}.ToString()));
  }
  Reserve(own_count_ + count, own_count_, &own_);
  CopyIndices(indices,
              reinterpret_cast<int64_t*>(own_.indices->data()) + own_count_);
  uint8_t* const added = own_.values->data() + own_count_ * row_bytes();
  if (values.size_bytes() > 0) {
    std::memcpy(added, values.raw_data(), values.size_bytes());
  }
  ScaleElements(dtype_, scale, values.element_count(), added);
  own_count_ += count;
  contributes_ = true;
  return absl::OkStatus();
}

absl::Status RowGather::ExchangeCounts() {
  int64_t own[2] = {own_count_, contributes_ ? 1 : 0};
  RETURN_IF_ERROR(communicator_->AllGather(
      {DType::kInt64, 2, own}, counts_per_rank_,
      {DType::kInt64, static_cast<int64_t>(counts_.size()), counts_.data()},
      {.name = name_, .timeout = timeout_}));
  contributor_count_ = 0;
  for (size_t rank = 0; rank < index_counts_.size(); ++rank) {
    index_counts_[rank] = counts_[2 * rank];
    value_counts_[rank] = counts_[2 * rank] * row_elements_;
    contributor_count_ += static_cast<int>(counts_[2 * rank + 1]);
  }
  return absl::OkStatus();
}

absl::Status RowGather::Gather() {
  RETURN_IF_ERROR(ExchangeCounts());
  if (communicator_->size() == 1) {
    ShowRows(own_, own_count_);
    return absl::OkStatus();
  }
  int64_t row_count = 0;
  for (const int64_t count : index_counts_) row_count += count;
  Reserve(row_count, 0, &all_);
  const CollectiveCall call{.name = name_, .timeout = timeout_};
  RETURN_IF_ERROR(communicator_->AllGather(
      {DType::kInt64, own_count_, own_.indices->data()}, index_counts_,
      {DType::kInt64, row_count, all_.indices->data()}, call));
  RETURN_IF_ERROR(communicator_->AllGather(
      {dtype_, own_count_ * row_elements_, own_.values->data()}, value_counts_,
      {dtype_, row_count * row_elements_, all_.values->data()}, call));
  ShowRows(all_, row_count);
  return absl::OkStatus();
}

void RowGather::ShowRows(const Rows& rows, int64_t row_count) {
  indices_ = Tensor(DType::kInt64, {row_count}, rows.indices);
  Shape shape = variable_shape_;
  shape.set_dim(0, row_count);
  values_ = Tensor(dtype_, std::move(shape), rows.values);
}

void RowGather::Scale(double scale) {
  ScaleElements(dtype_, scale, values_.element_count(),
                values_.mutable_raw_data());
}

}  // namespace muster
