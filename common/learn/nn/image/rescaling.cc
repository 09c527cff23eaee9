#include "common/learn/nn/image/rescaling.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"

namespace muster {
namespace {

// Numbers for the channels of `x`, in its dtype. Reports an error and returns
// no value if there is not one for each.
Value ForChannels(absl::string_view name, const std::vector<double>& numbers,
                  const Value& x) {
  GraphBuilder& builder = *x.builder();
  const auto count = static_cast<int64_t>(numbers.size());
  const Shape& shape = x.type().shape;
  if (shape.rank() == 0 || shape.dims().back() != count) {
    builder.ReportError(absl::InvalidArgumentError(
        absl::StrCat("Rescaling: ", name, " has ", count,
                     " numbers, which need an input with as many channels; "
                     "got ",
                     x.type().ToString())));
    return Value();
  }
  return Cast(builder.Constant(Tensor::FromSpan<double>({count}, numbers)),
              x.dtype());
}

}  // namespace

void RescalingLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.VisitNumbers(
      Described("scale", "One number, or one for each channel."), scale_);
  if (scale_.empty()) visitor.Refuse("scale", "is missing and has no default");
  visitor.VisitNumbers("offset", offset_);
  if (offset_.empty()) visitor.Refuse("offset", "must not be an empty list");
}

Value RescalingLayer::Call(Value x, const CallContext&) {
  if (!IsFloating(x.dtype())) x = Cast(x, DType::kFloat32);
  if (scale_.size() == 1) {
    x = x * scale_.front();
  } else {
    const Value scale = ForChannels("scale", scale_, x);
    if (!scale.ok()) return Value();
    x = x * scale;
  }
  if (offset_.size() == 1) {
    return offset_.front() == 0 ? x : x + offset_.front();
  }
  const Value offset = ForChannels("offset", offset_, x);
  return offset.ok() ? x + offset : Value();
}

LayerPtr Rescaling(const ChannelNumbers& scale,
                   const RescalingOptions& options) {
  return std::make_shared<RescalingLayer>(scale, options);
}

}  // namespace muster
