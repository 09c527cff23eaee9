#include "common/learn/nn/layers/layer_normalization.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/layer.h"

namespace muster {
namespace {

// Returns the axes ascending and counted from the front; empty if they are not
// axes of one example's features.
std::vector<int64_t> FeatureAxes(const std::vector<int64_t>& axes, int rank) {
  std::vector<int64_t> features;
  for (const int64_t axis : axes) {
    features.push_back(axis < 0 ? axis + rank : axis);
  }
  std::sort(features.begin(), features.end());
  const bool are_distinct =
      std::adjacent_find(features.begin(), features.end()) == features.end();
  const bool are_in_range =
      !features.empty() && features.front() >= 1 && features.back() < rank;
  if (!are_distinct || !are_in_range) features.clear();
  return features;
}

}  // namespace

void LayerNormalizationLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("axis", options_.axis);
  visitor.Visit("epsilon", options_.epsilon);
  visitor.Visit("center", options_.center);
  visitor.Visit("scale", options_.scale);
  visitor.VisitWeight("beta", options_.beta_initializer,
                      options_.beta_regularizer, options_.beta_constraint);
  visitor.VisitWeight("gamma", options_.gamma_initializer,
                      options_.gamma_regularizer, options_.gamma_constraint);
}

void LayerNormalizationLayer::Build(const Shape& input) {
  Shape shape;
  for (const int64_t axis : FeatureAxes(options_.axis, input.rank())) {
    shape.AddDim(input.dim(static_cast<int>(axis)));
  }
  if (options_.scale) {
    gamma_ = AddWeight("gamma", shape, options_.gamma_initializer,
                       {.regularizer = options_.gamma_regularizer,
                        .constraint = options_.gamma_constraint});
  }
  if (options_.center) {
    beta_ = AddWeight("beta", shape, options_.beta_initializer,
                      {.regularizer = options_.beta_regularizer,
                       .constraint = options_.beta_constraint});
  }
}

Value LayerNormalizationLayer::Call(Value x, const CallContext&) {
  const std::vector<int64_t> axes =
      FeatureAxes(options_.axis, x.shape().rank());
  if (axes.empty()) {
    x.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        "LayerNormalization: [", absl::StrJoin(options_.axis, ", "),
        "] are not axes of the features of an input of type ",
        x.type().ToString())));
    return Value();
  }
  const DType result = dtype_policy().compute;
  const int first = static_cast<int>(axes.front());
  const Shape features(x.shape().dims().subspan(first));
  const bool are_rows = features.rank() == static_cast<int>(axes.size()) &&
                        features.IsFullyKnown();
  // The op computes in float32 on elements of 16 bits.
  if (!are_rows || x.dtype() != result) x = Cast(x, DType::kFloat32);
  const Value y =
      are_rows ? NormalizeRows(x, features) : NormalizeAlong(x, axes);
  return Cast(y, result);
}

Value LayerNormalizationLayer::NormalizeRows(Value x, const Shape& features) {
  const auto filled = [&](double value) {
    return x.builder()->Constant(
        Tensor::Full(DType::kFloat32, features, value));
  };
  const Value scale =
      options_.scale ? Cast(gamma_, DType::kFloat32) : filled(1);
  const Value offset =
      options_.center ? Cast(beta_, DType::kFloat32) : filled(0);
  return LayerNorm(x, scale, offset, {.epsilon = options_.epsilon}).y;
}

Value LayerNormalizationLayer::NormalizeAlong(
    Value x, const std::vector<int64_t>& axes) {
  // The shape of the weights for broadcasting: 1 along all other axes.
  std::vector<int64_t> broadcast(x.shape().rank(), 1);
  for (const int64_t axis : axes) {
    broadcast[axis] = x.shape().dim(static_cast<int>(axis));
  }
  const auto spread = [&](Value weight) {
    return Reshape(Cast(weight, x.dtype()), broadcast);
  };
  const Value centred = x - Mean(x, axes, {.keep_dims = true});
  const Value variance = Mean(Square(centred), axes, {.keep_dims = true});
  Value y = centred * Rsqrt(variance + options_.epsilon);
  if (options_.scale) y = y * spread(gamma_);
  if (options_.center) y = y + spread(beta_);
  return y;
}

LayerPtr LayerNormalization(const LayerNormalizationOptions& options) {
  return std::make_shared<LayerNormalizationLayer>(options);
}

}  // namespace muster
