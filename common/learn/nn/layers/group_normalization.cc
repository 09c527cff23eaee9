#include "common/learn/nn/layers/group_normalization.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"

namespace muster {
namespace internal {

int FeatureAxis(int64_t axis, int rank) {
  if (axis < 0) axis += rank;
  return axis > 0 && axis < rank ? static_cast<int>(axis) : 0;
}

}  // namespace internal

void GroupNormalizationLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("groups", options_.groups);
  if (options_.groups < 1 && options_.groups != -1) {
    visitor.Refuse("groups",
                   absl::StrCat("must be at least 1, or -1 for a group for "
                                "each channel, got ",
                                options_.groups));
  }
  visitor.Visit("axis", options_.axis);
  visitor.Visit("epsilon", options_.epsilon);
  visitor.Visit("center", options_.center);
  visitor.Visit("scale", options_.scale);
  visitor.VisitWeight("beta", options_.beta_initializer,
                      options_.beta_regularizer, options_.beta_constraint);
  visitor.VisitWeight("gamma", options_.gamma_initializer,
                      options_.gamma_regularizer, options_.gamma_constraint);
}

void GroupNormalizationLayer::Build(const Shape& input) {
  // Call() reports an invalid axis.
  const int axis = internal::FeatureAxis(options_.axis, input.rank());
  const Shape shape = {axis == 0 ? 0 : input.dim(axis)};
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

std::vector<int64_t> GroupNormalizationLayer::Divide(const Shape& shape,
                                                     int axis) const {
  if (axis == 0 || !Shape(shape.dims().subspan(1)).IsFullyKnown()) return {};
  const int64_t channels = shape.dim(axis);
  const int64_t groups = options_.groups == -1 ? channels : options_.groups;
  if (groups < 1 || channels < groups || channels % groups != 0) return {};
  std::vector<int64_t> divided(shape.dims().begin(), shape.dims().end());
  divided[0] = -1;
  divided[axis] = channels / groups;
  divided.insert(divided.begin() + axis, groups);
  return divided;
}

Value GroupNormalizationLayer::Call(Value x, const CallContext&) {
  const Shape input = x.shape();
  const int axis = internal::FeatureAxis(options_.axis, input.rank());
  const std::vector<int64_t> divided = Divide(input, axis);
  if (divided.empty()) {
    x.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        "GroupNormalization ", name(),
        ": expected an input of which all extents "
        "except the batch are known, and whose axis ",
        options_.axis, " can be divided into ", options_.groups,
        " groups of equal size (-1: one per channel); the input is ",
        x.type().ToString())));
    return Value();
  }
  if (x.dtype() != DType::kFloat32) x = Cast(x, DType::kFloat32);

  // The groups are at `axis`, followed by the channels of a group.
  std::vector<int64_t> reduced;
  std::vector<int64_t> broadcast(divided.size(), 1);
  for (int i = 1; i < static_cast<int>(divided.size()); ++i) {
    if (i != axis) reduced.push_back(i);
  }
  broadcast[axis] = divided[axis];
  broadcast[axis + 1] = divided[axis + 1];
  const auto spread = [&](Value weight) {
    return Reshape(Cast(weight, x.dtype()), broadcast);
  };
  const Value grouped = Reshape(x, divided);
  const Value centred = grouped - Mean(grouped, reduced, {.keep_dims = true});
  const Value variance = Mean(Square(centred), reduced, {.keep_dims = true});
  Value y = centred * Rsqrt(variance + options_.epsilon);
  if (options_.scale) y = y * spread(gamma_);
  if (options_.center) y = y + spread(beta_);

  std::vector<int64_t> shape(input.dims().begin(), input.dims().end());
  shape[0] = -1;
  return Reshape(y, shape);
}

LayerPtr GroupNormalization(const GroupNormalizationOptions& options) {
  return std::make_shared<GroupNormalizationLayer>(options);
}

}  // namespace muster
