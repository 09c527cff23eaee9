#include "common/learn/nn/layers/masking.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/masks.h"

namespace muster {

void MaskingLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("mask_value", mask_value_);
}

Value MaskingLayer::Call(Value x, const CallContext& context) {
  if (x.shape().rank() < 2) {
    x.builder()->ReportError(absl::InvalidArgumentError(
        absl::StrCat("Masking ", name(),
                     ": expected an input [batch, time, ..., features], "
                     "got ",
                     x.type().ToString())));
    return Value();
  }
  const Value differs = Cast(NotEqual(x, mask_value_), DType::kFloat32);
  const Value counts = Max(differs, {-1}, {.keep_dims = true}) > 0.5;
  const Value y = Select(counts, x, ZerosLike(x));
  if (context.masks != nullptr) context.masks->Set(y, Squeeze(counts, {-1}));
  return y;
}

LayerPtr Masking(const MaskingOptions& options) {
  return std::make_shared<MaskingLayer>(options);
}

LayerPtr Identity(const IdentityOptions& options) {
  return std::make_shared<IdentityLayer>(options);
}

}  // namespace muster
