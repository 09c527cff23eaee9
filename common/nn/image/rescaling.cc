#include "common/nn/image/rescaling.h"

#include <memory>

#include "common/graph/graph_builder.h"
#include "common/nn/layer.h"
#include "common/ops/ops.h"
#include "common/tensor/dtype.h"

namespace muster {

Value RescalingLayer::Call(Value x, const CallContext&) {
  if (!IsFloating(x.dtype())) x = Cast(x, DType::kFloat32);
  x = x * scale_;
  return offset_ == 0 ? x : x + offset_;
}

LayerPtr Rescaling(double scale, const RescalingOptions& options) {
  return std::make_shared<RescalingLayer>(scale, options);
}

}  // namespace muster
