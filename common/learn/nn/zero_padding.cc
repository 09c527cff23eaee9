#include "common/learn/nn/zero_padding.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"

namespace muster {

void VisitMargins2D(ConfigVisitor& visitor, ConfigName name,
                    Margins2D& margins) {
  const auto& [height, width] = margins;
  std::vector<int64_t> all = {height[0], height[1], width[0], width[1]};
  visitor.VisitPairs(name, all);
  if (all.size() == 1) {
    margins = Margins2D(all[0]);
  } else if (all.size() == 2) {
    margins = Margins2D(all[0], all[1]);
  } else if (all.size() == 4) {
    using Pair = std::array<int64_t, 2>;
    margins = Margins2D(Pair{all[0], all[1]}, Pair{all[2], all[3]});
  } else {
    visitor.Refuse(
        name,
        absl::StrCat("must be one number for all sides, two for height and "
                     "width, or four for top, bottom, left and right, got ",
                     all.size()));
  }
}

void ZeroPadding2DLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitMargins2D(visitor, "padding", padding_);
}

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
