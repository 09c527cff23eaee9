#include "common/nn/loss.h"

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/graph/graph_builder.h"
#include "common/nn/sample_weights.h"
#include "common/ops/ops.h"

namespace muster {
namespace {

using internal::AlignSparseLabels;
using internal::AlignWeights;
using internal::HasWeights;

// Keeps a batch without a single counted example from dividing by zero.
constexpr double kEpsilon = 1e-7;

Value CountOf(Value x) {
  std::vector<int64_t> axes(x.shape().rank());
  std::iota(axes.begin(), axes.end(), 0);
  return CountAlong(x, axes);
}

}  // namespace

Loss::Loss(absl::string_view name, PerExample per_example, Reduction reduction)
    : name_(name),
      per_example_(std::move(per_example)),
      reduction_(reduction) {}

Loss Loss::IgnoringClass(int64_t ignored_class) const {
  Loss loss = *this;
  loss.ignored_class_ = ignored_class;
  return loss;
}

Value Loss::operator()(Value y_true, Value y_pred) const {
  return (*this)(y_true, y_pred, internal::NoWeights());
}

Value Loss::operator()(Value y_true, Value y_pred, Value sample_weight) const {
  return WithCount(y_true, y_pred, sample_weight).loss;
}

Loss::Counted Loss::WithCount(Value y_true, Value y_pred) const {
  return WithCount(y_true, y_pred, internal::NoWeights());
}

Loss::Counted Loss::WithCount(Value y_true, Value y_pred,
                              Value sample_weight) const {
  y_pred = internal::AtLeastFloat32(y_pred);
  Value counted;  // 1 where an example counts, else 0.
  if (ignored_class_.has_value()) {
    y_true = AlignSparseLabels(y_true, y_pred);
    const Value is_ignored =
        Equal(y_true, static_cast<double>(*ignored_class_));
    // The ignored label may be no class at all.
    y_true = Select(is_ignored, ZerosLike(y_true), y_true);
    counted = Cast(LogicalNot(is_ignored), y_pred.dtype());
  }

  Value values = per_example_(y_true, y_pred);
  if (!values.ok()) return {values, values};
  Value example_count;
  if (reduction_ != Reduction::kSum) {
    example_count = ignored_class_.has_value()
                        ? Cast(Sum(counted), DType::kFloat32)
                        : CountOf(values);
  }
  if (ignored_class_.has_value()) {
    if (reduction_ == Reduction::kSumOverBatchSize) {
      // A mean over those that count.
      const Value count = Cast(CountOf(counted), counted.dtype());
      counted = counted * (count / (Sum(counted) + kEpsilon));
    }
    values = values * AlignWeights(counted, values);
  }
  if (HasWeights(sample_weight)) {
    values = values * AlignWeights(sample_weight, values);
  }

  switch (reduction_) {
    case Reduction::kSumOverBatchSize:
      return {Mean(values), example_count};
    case Reduction::kSum:
      return {Sum(values), example_count};
    case Reduction::kNone:
      return {values, example_count};
  }
  return {values, example_count};
}

}  // namespace muster
