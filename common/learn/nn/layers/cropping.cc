#include "common/learn/nn/layers/cropping.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/zero_padding.h"

namespace muster {
namespace {

void VisitMargins1D(ConfigVisitor& visitor, ConfigName name,
                    Margins1D& margins) {
  std::vector<int64_t> both = {margins.before, margins.after};
  visitor.Visit(Described(name, "For both ends, or one for each."), both);
  if (both.size() == 1) both.push_back(both.front());
  if (both.size() != 2 || both[0] < 0 || both[1] < 0) {
    visitor.Refuse(name,
                   "must be one number of at least 0, or one for each end");
    return;
  }
  margins = Margins1D(both[0], both[1]);
}

// `x` without margins of the axes from 1 on; reports if nothing would be left.
Value Crop(const Layer& layer, Value x,
           const std::vector<std::array<int64_t, 2>>& margins) {
  const int rank = static_cast<int>(margins.size()) + 2;
  bool is_valid = x.shape().rank() == rank;
  std::vector<int64_t> begin(rank, 0);
  std::vector<int64_t> size(rank, -1);
  for (int axis = 1; is_valid && axis < rank - 1; ++axis) {
    const auto [before, after] = margins[axis - 1];
    // An unknown extent is negative.
    const int64_t left = x.shape().dim(axis) - before - after;
    is_valid = before >= 0 && after >= 0 && left >= 1;
    begin[axis] = before;
    size[axis] = left;
  }
  if (is_valid) return Slice(x, begin, size);
  x.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
      layer.kind(), " ", layer.name(), ": expected an input of rank ", rank,
      " with known extents that are greater than the cropping, got ",
      x.type().ToString())));
  return Value();
}

}  // namespace

void ZeroPadding1DLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitMargins1D(visitor, "padding", padding_);
}

Value ZeroPadding1DLayer::Call(Value x, const CallContext&) {
  const auto [before, after] = padding_;
  if (x.shape().rank() != 3 || before < 0 || after < 0) {
    x.builder()->ReportError(absl::InvalidArgumentError(
        absl::StrCat("ZeroPadding1D ", name(),
                     ": expected padding of at least 0 and an "
                     "input [batch, time, channels], got ",
                     x.type().ToString())));
    return Value();
  }
  return Pad(x, {0, 0, before, after, 0, 0});
}

void Cropping1DLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitMargins1D(visitor, "cropping", cropping_);
}

Value Cropping1DLayer::Call(Value x, const CallContext&) {
  return Crop(*this, x, {{cropping_.before, cropping_.after}});
}

void Cropping2DLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitMargins(visitor, "cropping", cropping_);
}

Value Cropping2DLayer::Call(Value x, const CallContext&) {
  return Crop(*this, x, {cropping_.height, cropping_.width});
}

void Cropping3DLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitMargins(visitor, "cropping", cropping_);
}

Value Cropping3DLayer::Call(Value x, const CallContext&) {
  return Crop(*this, x, {cropping_.depth, cropping_.height, cropping_.width});
}

LayerPtr ZeroPadding1D(Margins1D padding, const MarginOptions& options) {
  return std::make_shared<ZeroPadding1DLayer>(padding, options);
}

LayerPtr Cropping1D(Margins1D cropping, const MarginOptions& options) {
  return std::make_shared<Cropping1DLayer>(cropping, options);
}

LayerPtr Cropping2D(const Margins2D& cropping, const MarginOptions& options) {
  return std::make_shared<Cropping2DLayer>(cropping, options);
}

LayerPtr Cropping3D(const Margins3D& cropping, const MarginOptions& options) {
  return std::make_shared<Cropping3DLayer>(cropping, options);
}

}  // namespace muster
