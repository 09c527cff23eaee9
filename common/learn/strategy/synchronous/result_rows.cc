#include "common/learn/strategy/synchronous/result_rows.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/net/collectives/tensor_span.h"

namespace muster {
namespace {

constexpr char kName[] = "predictions";

bool HasKnownRows(const TensorType& type) {
  if (type.shape.rank() == 0 || type.dtype == DType::kString) return false;
  const absl::Span<const int64_t> row = type.shape.dims().subspan(1);
  return std::find(row.begin(), row.end(), Shape::kUnknown) == row.end();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ResultRows>> ResultRows::Create(
    std::vector<TensorType> types, Communicator* communicator,
    absl::Duration timeout) {
  for (size_t i = 0; i < types.size(); ++i) {
    if (HasKnownRows(types[i])) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "result ", i, " is ", types[i].ToString(),
        "; results of replicas are put one behind the other, so they are rows "
        "of numbers, of one known shape"));
  }
  return absl::WrapUnique(
      new ResultRows(std::move(types), communicator, timeout));
}

ResultRows::ResultRows(std::vector<TensorType> types,
                       Communicator* communicator, absl::Duration timeout)
    : types_(std::move(types)),
      communicator_(communicator),
      timeout_(timeout),
      counts_(communicator->size() * (types_.size() + 1)),
      counts_per_rank_(communicator->size(),
                       static_cast<int64_t>(types_.size() + 1)),
      results_(types_.size()) {}

absl::Status ResultRows::ExchangeCounts(absl::Span<const Tensor> results,
                                        bool has_data) {
  const int64_t width = static_cast<int64_t>(types_.size() + 1);
  int64_t* const own = counts_.data() + communicator_->rank() * width;
  own[0] = has_data ? 1 : 0;
  for (size_t i = 0; i < types_.size(); ++i) {
    own[i + 1] = has_data ? results[i].shape().dim(0) : 0;
  }
  const int64_t count = static_cast<int64_t>(counts_.size());
  RETURN_IF_ERROR(
      communicator_->AllGather({DType::kInt64, width, own}, counts_per_rank_,
                               {DType::kInt64, count, counts_.data()},
                               {.name = kName, .timeout = timeout_}));
  contributor_count_ = 0;
  for (int64_t i = 0; i < count; i += width) contributor_count_ += counts_[i];
  return absl::OkStatus();
}

absl::Status ResultRows::Gather(absl::Span<const Tensor> results,
                                bool has_data) {
  RETURN_IF_ERROR(ExchangeCounts(results, has_data));
  const size_t width = types_.size() + 1;
  std::vector<int64_t> element_counts(communicator_->size());
  for (size_t i = 0; i < types_.size(); ++i) {
    Shape shape = types_[i].shape;
    const int64_t row_elements = shape.ElementCountInRange(1, shape.rank());
    int64_t row_count = 0;
    for (size_t rank = 0; rank < element_counts.size(); ++rank) {
      const int64_t rows = counts_[rank * width + i + 1];
      row_count += rows;
      element_counts[rank] = rows * row_elements;
    }
    shape.set_dim(0, row_count);
    results_[i] = Tensor(types_[i].dtype, std::move(shape));
    Tensor own;
    if (has_data) own = results[i];
    RETURN_IF_ERROR(communicator_->AllGather(
        has_data ? SpanOf(own) : TensorSpan{types_[i].dtype, 0, nullptr},
        element_counts, SpanOf(results_[i]),
        {.name = kName, .timeout = timeout_}));
  }
  return absl::OkStatus();
}

}  // namespace muster
