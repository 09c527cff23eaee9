#include "common/learn/nn/layers/normalization.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"

namespace muster {
namespace {

// Lower bound of the standard deviation, for features that are constant.
constexpr double kDeviationMin = 1e-7;

Tensor ToFloat32(const std::vector<double>& values, double divisor,
                 bool per_feature) {
  const Shape shape =
      per_feature ? Shape{static_cast<int64_t>(values.size())} : Shape{};
  Tensor tensor(DType::kFloat32, shape);
  for (size_t i = 0; i < values.size(); ++i) {
    tensor.mutable_flat<float>()[i] = static_cast<float>(values[i] / divisor);
  }
  return tensor;
}

Tensor ToTensor(const std::vector<float>& values) {
  const Shape shape =
      values.size() == 1 ? Shape{} : Shape{static_cast<int64_t>(values.size())};
  return Tensor::FromSpan<float>(shape, values);
}

void VisitNumbers(ConfigVisitor& visitor, ConfigName name,
                  std::vector<float>& numbers) {
  std::vector<double> wide(numbers.begin(), numbers.end());
  visitor.Visit(name, wide);
  numbers.assign(wide.begin(), wide.end());
}

}  // namespace

NormalizationLayer::NormalizationLayer(const NormalizationOptions& options)
    : AdaptableLayer(options.name), options_(options) {
  if (options_.per_feature) axis_ = {-1};
}

absl::Status NormalizationLayer::Observe(const Tensor& data) {
  if (built() || !options_.mean.empty()) {
    return absl::FailedPreconditionError(
        "Normalization cannot observe more data: it was built, or its mean and "
        "variance were given");
  }
  if (!IsFloating(data.dtype()) && !IsInteger(data.dtype())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Normalization: expected numbers, got ", data.type().ToString()));
  }
  const bool has_features = options_.per_feature && data.shape().rank() > 0;
  const int64_t width = has_features ? data.shape().dims().back() : 1;
  if (mean_.empty()) {
    mean_.assign(width, 0);
    squares_.assign(width, 0);
  }
  if (width != static_cast<int64_t>(mean_.size())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Normalization: expected ", mean_.size(),
        " features as in the data before, got ", data.type().ToString()));
  }
  for (int64_t i = 0; i < data.element_count(); ++i) {
    const int64_t feature = i % width;
    if (feature == 0) ++count_;
    const double value = data.ElementAsDouble(i);
    const double distance = value - mean_[feature];
    mean_[feature] += distance / static_cast<double>(count_);
    squares_[feature] += distance * (value - mean_[feature]);
  }
  return absl::OkStatus();
}

Tensor NormalizationLayer::mean() const {
  return ToFloat32(mean_, 1, options_.per_feature);
}

Tensor NormalizationLayer::variance() const {
  return ToFloat32(squares_, static_cast<double>(count_), options_.per_feature);
}

std::vector<Tensor> NormalizationLayer::AdaptedState() const {
  const Shape shape = {static_cast<int64_t>(mean_.size())};
  return {Tensor::Scalar<int64_t>(count_),
          Tensor::FromSpan<double>(shape, mean_),
          Tensor::FromSpan<double>(shape, squares_)};
}

absl::Status NormalizationLayer::SetAdaptedState(
    absl::Span<const Tensor> state) {
  const bool fits = state.size() == 3 &&
                    state[0].type() == TensorType{DType::kInt64, Shape()} &&
                    state[1].dtype() == DType::kFloat64 &&
                    state[2].type() == state[1].type();
  if (!fits) {
    return absl::InvalidArgumentError("expected the mean and the variance");
  }
  count_ = state[0].scalar<int64_t>();
  const auto mean = state[1].flat<double>();
  const auto squares = state[2].flat<double>();
  mean_.assign(mean.begin(), mean.end());
  squares_.assign(squares.begin(), squares.end());
  return absl::OkStatus();
}

void NormalizationLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit({"", "axis"}, axis_);
  options_.per_feature = !axis_.empty();
  if (axis_.size() > 1) {
    visitor.Refuse({"", "axis"},
                   absl::StrCat("must be the last axis or none, got ",
                                absl::StrJoin(axis_, ", ")));
  }
  visitor.Visit("invert", options_.invert);
  VisitNumbers(visitor,
               Described("mean",
                         "Absent: taken from the training data before training "
                         "starts. Both or neither."),
               options_.mean);
  VisitNumbers(visitor, "variance", options_.variance);
  if (options_.mean.size() != options_.variance.size()) {
    visitor.Refuse(
        "variance",
        absl::StrCat("must have as many numbers as mean, which has ",
                     options_.mean.size(), ", got ", options_.variance.size()));
  }
}

void NormalizationLayer::Build(const Shape&) {
  if (count_ == 0) return;
  const Tensor mean = this->mean();
  mean_weight_ =
      AddWeight("mean", mean.shape(), FixedValue(mean), {.trainable = false});
  variance_weight_ = AddWeight("variance", mean.shape(), FixedValue(variance()),
                               {.trainable = false});
}

Value NormalizationLayer::Call(Value x, const CallContext&) {
  GraphBuilder& builder = *x.builder();
  if (!axis_.empty() && axis_.front() != -1 &&
      axis_.front() != x.shape().rank() - 1) {
    builder.ReportError(absl::InvalidArgumentError(absl::StrCat(
        "Normalization: axis ", axis_.front(), " is not the last one of ",
        x.shape().ToString(), "; Permute() puts it there")));
    return Value();
  }
  const bool is_given = !options_.mean.empty();
  if (options_.mean.size() != options_.variance.size() ||
      (!is_given && count_ == 0)) {
    builder.ReportError(absl::FailedPreconditionError(
        "Normalization has no mean and variance: pass it data with Observe() "
        "before the model is built, or give both as options"));
    return Value();
  }
  if (!IsFloating(x.dtype())) x = Cast(x, DType::kFloat32);
  const Value mean =
      is_given ? builder.Constant(ToTensor(options_.mean)) : mean_weight_;
  const Value variance = is_given
                             ? builder.Constant(ToTensor(options_.variance))
                             : variance_weight_;
  const Value deviation = Maximum(Sqrt(variance), kDeviationMin);
  return options_.invert ? mean + x * deviation : (x - mean) / deviation;
}

LayerPtr Normalization(const NormalizationOptions& options) {
  return std::make_shared<NormalizationLayer>(options);
}

}  // namespace muster
