#include "common/learn/nn/layers/leaky_relu.h"

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"

namespace muster {

void LeakyReLULayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("negative_slope", negative_slope_);
}

Value LeakyReLULayer::Call(Value x, const CallContext&) {
  if (!(negative_slope_ >= 0)) {
    x.builder()->ReportError(absl::InvalidArgumentError(
        absl::StrCat("LeakyReLU: negative_slope is ", negative_slope_,
                     ", expected 0 or more")));
    return Value();
  }
  return LeakyRelu(x, negative_slope_);
}

LayerPtr LeakyReLU(const LeakyReLUOptions& options) {
  return std::make_shared<LeakyReLULayer>(options);
}

void PReLULayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.VisitWeight("alpha", options_.alpha_initializer,
                      options_.alpha_regularizer, options_.alpha_constraint);
  visitor.Visit("shared_axes", options_.shared_axes);
}

void PReLULayer::Build(const Shape& input) {
  Shape shape(input.dims().subspan(input.rank() > 0 ? 1 : 0));
  for (const int64_t axis : options_.shared_axes) {
    // Call() reports other axes.
    if (axis >= 1 && axis < input.rank()) {
      shape.set_dim(static_cast<int>(axis) - 1, 1);
    }
  }
  alpha_ = AddWeight("alpha", shape, options_.alpha_initializer,
                     {.regularizer = options_.alpha_regularizer,
                      .constraint = options_.alpha_constraint});
}

Value PReLULayer::Call(Value x, const CallContext&) {
  for (const int64_t axis : options_.shared_axes) {
    if (axis >= 1 && axis < x.shape().rank()) continue;
    x.builder()->ReportError(absl::InvalidArgumentError(
        absl::StrCat("PReLU: shared_axes has ", axis,
                     ", which is not an axis of one example of ",
                     x.type().ToString(), "; axes are counted from 1")));
    return Value();
  }
  return Relu(x) - alpha_ * Relu(-x);
}

LayerPtr PReLU(const PReLUOptions& options) {
  return std::make_shared<PReLULayer>(options);
}

}  // namespace muster
