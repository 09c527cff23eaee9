#include "common/learn/nn/preprocessing/discretization.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/nn/config_visitor.h"

namespace muster {

void DiscretizationLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit(
      Described("bin_boundaries",
                "Absent: taken from the training data before training starts."),
      options_.bin_boundaries);
  visitor.Visit(Described("num_bins", "In place of bin_boundaries."),
                options_.num_bins);
  visitor.Visit("epsilon", options_.epsilon);
  visitor.Visit(Described("output_mode", "Not TF_IDF."), options_.output_mode,
                kCategoryOutputNames);
  summary_ = QuantileSummary(options_.epsilon);
  if (!std::is_sorted(options_.bin_boundaries.begin(),
                      options_.bin_boundaries.end())) {
    visitor.Refuse("bin_boundaries", "must ascend");
  }
  if (options_.num_bins.has_value() && *options_.num_bins < 1) {
    visitor.Refuse("num_bins", absl::StrCat("must be at least 1, got ",
                                            *options_.num_bins));
  }
  if (!(options_.epsilon > 0 && options_.epsilon < 1)) {
    visitor.Refuse("epsilon", absl::StrCat("must be between 0 and 1, got ",
                                           options_.epsilon));
  }
  if (options_.output_mode == CategoryOutput::kTfIdf) {
    visitor.Refuse("output_mode",
                   "must be int, one_hot, multi_hot or count, got tf_idf");
  }
}

absl::Status DiscretizationLayer::Observe(const Tensor& data) {
  if (!NeedsData()) {
    return absl::FailedPreconditionError(
        "Discretization has boundaries and cannot observe more data");
  }
  if (!IsFloating(data.dtype()) && !IsInteger(data.dtype())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Discretization: expected numbers, got ", data.type().ToString()));
  }
  std::vector<float> numbers(data.element_count());
  for (int64_t i = 0; i < data.element_count(); ++i) {
    numbers[i] = static_cast<float>(data.ElementAsDouble(i));
  }
  summary_.Add(numbers);
  return absl::OkStatus();
}

absl::Status DiscretizationLayer::FinishObserving() {
  if (!options_.num_bins.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("Discretization ", name(),
                     ": expected num_bins or bin_boundaries, got neither"));
  }
  const std::vector<float> boundaries = summary_.Boundaries(*options_.num_bins);
  if (boundaries.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("Discretization ", name(),
                     ": the data do not divide into ", *options_.num_bins,
                     " bins; expected two bins and two numbers at least"));
  }
  options_.bin_boundaries.assign(boundaries.begin(), boundaries.end());
  summary_ = QuantileSummary(options_.epsilon);
  return absl::OkStatus();
}

std::vector<Tensor> DiscretizationLayer::AdaptedState() const {
  return {Tensor::FromSpan<double>(
      {static_cast<int64_t>(options_.bin_boundaries.size())},
      options_.bin_boundaries)};
}

absl::Status DiscretizationLayer::SetAdaptedState(
    absl::Span<const Tensor> state) {
  if (state.size() != 1 || state[0].dtype() != DType::kFloat64) {
    return absl::InvalidArgumentError("expected the boundaries of bins");
  }
  const auto boundaries = state[0].flat<double>();
  options_.bin_boundaries.assign(boundaries.begin(), boundaries.end());
  return absl::OkStatus();
}

Value DiscretizationLayer::Call(Value x, const CallContext&) {
  GraphBuilder& builder = *x.builder();
  if (NeedsData()) {
    builder.ReportError(absl::FailedPreconditionError(absl::StrCat(
        "Discretization ", name(),
        " has no boundaries: give bin_boundaries, or num_bins and adapt the "
        "layer to data")));
    return Value();
  }
  const int64_t count = static_cast<int64_t>(options_.bin_boundaries.size());
  const std::vector<float> boundaries(options_.bin_boundaries.begin(),
                                      options_.bin_boundaries.end());
  const Value all =
      builder.Constant(Tensor::FromSpan<float>({count}, boundaries));
  const Value is_below = Less(ExpandDims(Cast(x, DType::kFloat32), -1), all);
  const Value bins = Sum(Cast(LogicalNot(is_below), DType::kInt32), {-1});
  return options_.output_mode == CategoryOutput::kInt
             ? bins
             : EncodeCategories(bins, options_.output_mode, count + 1);
}

LayerPtr Discretization(const DiscretizationOptions& options) {
  return std::make_shared<DiscretizationLayer>(options);
}

}  // namespace muster
