#include "common/learn/nn/layers/dense.h"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"

namespace muster {

DenseLayer::DenseLayer(int64_t units, const DenseOptions& options)
    : Layer(options.name), units_(units), options_(options) {}

void DenseLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.VisitPositive("units", units_);
  visitor.Visit("activation", options_.activation);
  visitor.Visit("use_bias", options_.use_bias);
  visitor.VisitWeight("kernel", options_.kernel_initializer,
                      options_.kernel_regularizer, options_.kernel_constraint);
  visitor.VisitWeight("bias", options_.bias_initializer,
                      options_.bias_regularizer, options_.bias_constraint);
}

void DenseLayer::Build(const Shape& input) {
  const int64_t width = input.rank() == 0 ? 0 : input.dims().back();
  // Call() reports values below 1. Shape would read -1 as unknown.
  const int64_t units = std::max<int64_t>(units_, 0);
  kernel_ = AddWeight("kernel", {width, units}, options_.kernel_initializer,
                      {.regularizer = options_.kernel_regularizer,
                       .constraint = options_.kernel_constraint});
  if (options_.use_bias) {
    bias_ = AddWeight("bias", {units}, options_.bias_initializer,
                      {.regularizer = options_.bias_regularizer,
                       .constraint = options_.bias_constraint});
  }
}

Value DenseLayer::Call(Value x, const CallContext&) {
  if (x.shape().rank() < 2 || units_ < 1) {
    x.builder()->ReportError(absl::InvalidArgumentError(
        absl::StrCat("Dense(", units_,
                     "): expected at least 1 unit and an input of rank 2 "
                     "or more, [batch, ..., features]; the input is ",
                     x.type().ToString())));
    return Value();
  }
  if (!IsFloating(x.dtype())) x = Cast(x, compute_dtype());

  Value y = MatMul(x, kernel_);
  if (options_.use_bias) y = y + bias_;
  return Activate(options_.activation, y);
}

LayerPtr Dense(int64_t units, const DenseOptions& options) {
  return std::make_shared<DenseLayer>(units, options);
}

}  // namespace muster
