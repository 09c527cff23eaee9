#include "common/learn/nn/layers/relu.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"

namespace muster {

void ReLULayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("max_value", options_.max_value);
  visitor.Visit("negative_slope", options_.negative_slope);
  visitor.Visit("threshold", options_.threshold);
}

Value ReLULayer::Call(Value x, const CallContext&) {
  const double slope = options_.negative_slope;
  const double threshold = options_.threshold;
  if (slope < 0 || threshold < 0 || options_.max_value.value_or(0) < 0) {
    x.builder()->ReportError(absl::InvalidArgumentError(
        absl::StrCat("ReLU ", name(),
                     ": expected max_value, negative_slope and threshold of at "
                     "least 0")));
    return Value();
  }
  if (slope != 0 && threshold == 0 && !options_.max_value.has_value()) {
    return LeakyRelu(x, slope);
  }
  // Uses the ops with specialized kernels where possible.
  const bool is_relu6 = threshold == 0 && options_.max_value == 6.0;
  Value y = is_relu6         ? Relu6(x)
            : threshold == 0 ? Relu(x)
                             : Select(x > threshold, x, ZerosLike(x));
  if (options_.max_value.has_value() && !is_relu6) {
    y = Minimum(y, *options_.max_value);
  }
  if (slope != 0) y = y - Relu(threshold - x) * slope;
  return y;
}

LayerPtr ReLU(const ReLUOptions& options) {
  return std::make_shared<ReLULayer>(options);
}

}  // namespace muster
