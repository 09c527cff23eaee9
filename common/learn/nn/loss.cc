#include "common/learn/nn/loss.h"

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/nn/sample_weights.h"

namespace muster {
namespace {

using internal::AlignSparseLabels;
using internal::AlignWeights;
using internal::HasWeights;

Value CountOf(Value x) {
  std::vector<int64_t> axes(x.shape().rank());
  std::iota(axes.begin(), axes.end(), 0);
  return CountAlong(x, axes);
}

// True if a mask that there is fits the losses; reports if not.
bool MaskFits(absl::string_view loss, Value mask, Value values) {
  if (!HasWeights(mask)) return true;
  if (!mask.ok() || !values.ok()) return false;
  const bool fits = mask.dtype() == DType::kBool &&
                    mask.shape().rank() <= values.shape().rank();
  if (fits) return true;
  values.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
      loss, ": expected a mask, bool, of no more axes than the losses, ",
      values.type().ToString(), "; got ", mask.type().ToString())));
  return false;
}

// 1 where both say that a position counts, else 0, for `values` to be
// multiplied by; of no graph where all count.
Value CountedPositions(Value has_label, Value mask, Value values) {
  if (!HasWeights(mask)) {
    return HasWeights(has_label) ? AlignWeights(has_label, values) : Value();
  }
  mask = AlignWeights(mask, values);
  return HasWeights(has_label) ? mask * AlignWeights(has_label, values) : mask;
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

Loss Loss::CountingPositive() const {
  Loss loss = *this;
  loss.counts_positive_ = true;
  return loss;
}

Value Loss::operator()(Value y_true, Value y_pred) const {
  return (*this)(y_true, y_pred, internal::NoWeights());
}

Value Loss::operator()(Value y_true, Value y_pred, Value sample_weight) const {
  return (*this)(y_true, y_pred, sample_weight, internal::NoWeights());
}

Value Loss::operator()(Value y_true, Value y_pred, Value sample_weight,
                       Value mask) const {
  return WithCount(y_true, y_pred, sample_weight, mask).loss;
}

Loss::Examples Loss::OfExamples(Value y_true, Value y_pred) const {
  if (per_example_ == nullptr) {
    y_pred.builder()->ReportError(absl::InvalidArgumentError(
        is_name() ? absl::StrCat("loss \"", name_,
                                 "\" is a name, which only Compile() looks up; "
                                 "call the function of the loss")
                  : "there is no loss"));
    return {Value(), internal::NoWeights()};
  }
  if (counts_positive_) {
    const Value losses = per_example_(y_true, y_pred);
    return {losses, losses.ok() ? losses > 0 : internal::NoWeights()};
  }
  if (!ignored_class_.has_value()) {
    return {per_example_(y_true, y_pred), internal::NoWeights()};
  }
  y_true = AlignSparseLabels(y_true, y_pred);
  const Value is_ignored = Equal(y_true, static_cast<double>(*ignored_class_));
  // The ignored label may be no class at all.
  y_true = Select(is_ignored, ZerosLike(y_true), y_true);
  return {per_example_(y_true, y_pred), LogicalNot(is_ignored)};
}

Loss::Counted Loss::WithCount(Value y_true, Value y_pred, Value sample_weight,
                              Value mask) const {
  const auto [losses, has_label] =
      OfExamples(y_true, internal::AtLeastFloat32(y_pred));
  Value values = losses;
  if (!values.ok()) return {values, values};
  if (!MaskFits(name_, mask, values)) {
    return {values.builder()->ValueOf(NodeOutput()), Value()};
  }
  Value counted = CountedPositions(has_label, mask, values);
  const bool is_mean_of_some =
      HasWeights(counted) && reduction_ == Reduction::kSumOverBatchSize;
  Value example_count;
  if (is_mean_of_some) {
    const Value sum = Sum(counted);
    example_count = Cast(sum, DType::kFloat32);
    counted =
        counted * (Cast(CountOf(counted), counted.dtype()) / Maximum(sum, 1.0));
  } else if (reduction_ != Reduction::kSum) {
    example_count = CountOf(values);
  }
  if (HasWeights(counted)) values = values * counted;
  if (HasWeights(sample_weight)) {
    values = values * AlignWeights(sample_weight, values);
  }

  const Value loss = reduction_ == Reduction::kSumOverBatchSize ? Mean(values)
                     : reduction_ == Reduction::kSum            ? Sum(values)
                                                                : values;
  return {loss, example_count, !is_mean_of_some};
}

}  // namespace muster
