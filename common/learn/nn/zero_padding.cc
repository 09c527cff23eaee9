#include "common/learn/nn/zero_padding.h"

#include <algorithm>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/learn/nn/layer.h"

namespace muster {

Value ZeroPadding2DLayer::Call(Value x, const CallContext&) {
  const auto [top, bottom] = padding_.height;
  const auto [left, right] = padding_.width;
  if (x.shape().rank() != 4 || std::min({top, bottom, left, right}) < 0) {
    x.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        "ZeroPadding2D ", name(),
        ": expected padding of at least 0 and an input [batch, height, width, "
        "channels], got ",
        x.type().ToString())));
    return Value();
  }
  return Pad(x, {0, 0, top, bottom, left, right, 0, 0});
}

LayerPtr ZeroPadding2D(const Margins2D& padding,
                       const ZeroPadding2DOptions& options) {
  return std::make_shared<ZeroPadding2DLayer>(padding, options);
}

}  // namespace muster
