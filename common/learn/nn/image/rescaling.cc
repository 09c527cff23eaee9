#include "common/learn/nn/image/rescaling.h"

#include <memory>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"

namespace muster {

void RescalingLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.VisitRequired("scale", scale_);
  visitor.Visit("offset", offset_);
}

Value RescalingLayer::Call(Value x, const CallContext&) {
  if (!IsFloating(x.dtype())) x = Cast(x, DType::kFloat32);
  x = x * scale_;
  return offset_ == 0 ? x : x + offset_;
}

LayerPtr Rescaling(double scale, const RescalingOptions& options) {
  return std::make_shared<RescalingLayer>(scale, options);
}

}  // namespace muster
