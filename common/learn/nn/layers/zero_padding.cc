#include "common/learn/nn/layers/zero_padding.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"

namespace muster {

namespace {

// Visits a pair for each axis. `sides` says what more than one number means.
void VisitPairOfEach(ConfigVisitor& visitor, ConfigName name,
                     const std::vector<std::array<int64_t, 2>*>& axes,
                     absl::string_view sides) {
  std::vector<int64_t> all;
  for (const auto* const axis : axes) {
    all.insert(all.end(), axis->begin(), axis->end());
  }
  visitor.VisitPairs(name, all);
  const size_t count = all.size();
  if (count != 1 && count != axes.size() && count != 2 * axes.size()) {
    visitor.Refuse(name, absl::StrCat("must be one number for all sides, ",
                                      sides, ", got ", count));
    return;
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t before = count == 1 ? 0 : count == axes.size() ? i : 2 * i;
    const size_t after = count == 2 * axes.size() ? before + 1 : before;
    *axes[i] = {all[before], all[after]};
  }
}

// Pads the axes from 1 on.
Value PadWithZeros(const Layer& layer, Value x,
                   const std::vector<std::array<int64_t, 2>>& margins,
                   absl::string_view expected) {
  const int rank = static_cast<int>(margins.size()) + 2;
  bool is_valid = x.shape().rank() == rank;
  std::vector<int64_t> padding = {0, 0};
  for (const auto [before, after] : margins) {
    is_valid = is_valid && before >= 0 && after >= 0;
    padding.insert(padding.end(), {before, after});
  }
  padding.insert(padding.end(), {0, 0});
  if (is_valid) return Pad(x, padding);
  x.builder()->ReportError(absl::InvalidArgumentError(
      absl::StrCat(layer.kind(), " ", layer.name(),
                   ": expected padding of at least 0 and an input ", expected,
                   ", got ", x.type().ToString())));
  return Value();
}

}  // namespace

void VisitMargins(ConfigVisitor& visitor, ConfigName name, Margins2D& margins) {
  VisitPairOfEach(
      visitor,
      Described(
          name,
          "For all sides; or height, width; or top, bottom, left, right."),
      {&margins.height, &margins.width},
      "two for height and width, or four for top, bottom, left and "
      "right");
}

void VisitMargins(ConfigVisitor& visitor, ConfigName name, Margins3D& margins) {
  VisitPairOfEach(visitor,
                  Described(name,
                            "For all sides; or depth, height, width; or front, "
                            "back, top, bottom, left, right."),
                  {&margins.depth, &margins.height, &margins.width},
                  "three for depth, height and width, or six for front, back, "
                  "top, bottom, left and right");
}

void ZeroPadding2DLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitMargins(visitor, "padding", padding_);
}

Value ZeroPadding2DLayer::Call(Value x, const CallContext&) {
  return PadWithZeros(*this, x, {padding_.height, padding_.width},
                      "[batch, height, width, channels]");
}

void ZeroPadding3DLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitMargins(visitor, "padding", padding_);
}

Value ZeroPadding3DLayer::Call(Value x, const CallContext&) {
  return PadWithZeros(*this, x,
                      {padding_.depth, padding_.height, padding_.width},
                      "[batch, depth, height, width, channels]");
}

LayerPtr ZeroPadding2D(const Margins2D& padding,
                       const ZeroPadding2DOptions& options) {
  return std::make_shared<ZeroPadding2DLayer>(padding, options);
}

LayerPtr ZeroPadding3D(const Margins3D& padding,
                       const ZeroPadding3DOptions& options) {
  return std::make_shared<ZeroPadding3DLayer>(padding, options);
}

}  // namespace muster
