#include "common/learn/nn/layers/rms_normalization.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/group_normalization.h"

namespace muster {

void RMSNormalizationLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("axis", options_.axis);
  visitor.Visit("epsilon", options_.epsilon);
}

void RMSNormalizationLayer::Build(const Shape& input) {
  // Call() reports an input without features.
  scale_ =
      AddWeight("scale", {input.rank() > 1 ? input.dims().back() : 0}, Ones());
}

Value RMSNormalizationLayer::Call(Value x, const CallContext&) {
  const int rank = x.shape().rank();
  if (rank < 2 || internal::FeatureAxis(options_.axis, rank) != rank - 1) {
    x.builder()->ReportError(absl::InvalidArgumentError(
        absl::StrCat("RMSNormalization ", name(), ": axis is ", options_.axis,
                     ", expected the last axis of an input [batch, ...], got ",
                     x.type().ToString())));
    return Value();
  }
  const Value mean = Mean(Square(x), {-1}, {.keep_dims = true});
  return x * Rsqrt(mean + options_.epsilon) * Cast(scale_, x.dtype());
}

LayerPtr RMSNormalization(const RMSNormalizationOptions& options) {
  return std::make_shared<RMSNormalizationLayer>(options);
}

void UnitNormalizationLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("axis", axis_);
}

Value UnitNormalizationLayer::Call(Value x, const CallContext&) {
  for (const int64_t axis : axis_) {
    if (internal::FeatureAxis(axis, x.shape().rank()) != 0) continue;
    x.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        "UnitNormalization ", name(), ": axis is {", absl::StrJoin(axis_, ", "),
        "}, expected axes of ", x.type().ToString(),
        " other than the first, which is the batch")));
    return Value();
  }
  constexpr double kEpsilon = 1e-12;
  const Value squared_norm = Sum(Square(x), axis_, {.keep_dims = true});
  return x * Rsqrt(Maximum(squared_norm, kEpsilon * kEpsilon));
}

LayerPtr UnitNormalization(const UnitNormalizationOptions& options) {
  return std::make_shared<UnitNormalizationLayer>(options);
}

}  // namespace muster
