#include "common/learn/nn/dropout.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/random.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"

namespace muster {
namespace {

constexpr int64_t kEachPosition = -1;

bool IsDrawnOnceForAllRows(const std::vector<int64_t>& noise_shape) {
  return !noise_shape.empty() && noise_shape.front() == 1;
}

bool Fits(const std::vector<int64_t>& noise_shape, const Shape& input) {
  if (static_cast<int>(noise_shape.size()) != input.rank()) return false;
  const bool needs_known_extents = IsDrawnOnceForAllRows(noise_shape);
  for (int axis = 0; axis < input.rank(); ++axis) {
    const int64_t extent = noise_shape[axis];
    if (extent == 1) continue;
    const bool is_known = input.dim(axis) != Shape::kUnknown;
    const bool fits = extent == kEachPosition
                          ? is_known || !needs_known_extents
                          : is_known && extent == input.dim(axis);
    if (!fits) return false;
  }
  return true;
}

Value NoiseMask(Value x, Value seed, double keep_probability,
                const std::vector<int64_t>& noise_shape) {
  if (noise_shape.empty()) return DropoutMask(seed, x, keep_probability);
  std::vector<int64_t> size = noise_shape;
  if (IsDrawnOnceForAllRows(noise_shape)) {
    for (size_t axis = 0; axis < size.size(); ++axis) {
      if (size[axis] != 1) size[axis] = x.shape().dim(static_cast<int>(axis));
    }
    // Numbers drawn like a row of the batch would differ between replicas.
    return RandomUniform(seed, Shape(size)) < keep_probability;
  }
  for (int64_t& extent : size) {
    if (extent != 1) extent = -1;
  }
  const Value like = Slice(x, std::vector<int64_t>(size.size(), 0), size);
  return DropoutMask(seed, like, keep_probability);
}

}  // namespace

namespace internal {

Value DropWithNoiseShape(Value x, Value seed, double rate,
                         const std::vector<int64_t>& noise_shape,
                         absl::string_view layer) {
  if (!noise_shape.empty() && !Fits(noise_shape, x.shape())) {
    x.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        layer, ": noise_shape is [", absl::StrJoin(noise_shape, ", "),
        "]; expected 1, -1 or the input's extent for each axis of ",
        x.type().ToString(),
        "; unknown extents must be 1, or -1 if the first is not 1")));
    return Value();
  }
  const Value keeps = NoiseMask(x, seed, 1 - rate, noise_shape);
  return Select(keeps, x * (1 / (1 - rate)), ZerosLike(x));
}

}  // namespace internal

void DropoutLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.VisitRate("rate", rate_);
  if (visitor.IsPresent("noise_shape", !noise_shape_.empty())) {
    visitor.VisitExtents(Described("noise_shape", "-1: the input's extent."),
                         noise_shape_);
  }
  const bool is_valid = std::all_of(
      noise_shape_.begin(), noise_shape_.end(),
      [](int64_t extent) { return extent >= 1 || extent == kEachPosition; });
  if (!is_valid) {
    visitor.Refuse("noise_shape",
                   absl::StrCat("must have extents of at least 1, or -1 for "
                                "that of the input, got [",
                                absl::StrJoin(noise_shape_, ", "), "]"));
  }
  visitor.Visit("seed", seed_);
}

Value DropoutLayer::Call(Value x, const CallContext& context) {
  if (!(rate_ >= 0 && rate_ <= 1)) {
    x.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        "Dropout: rate is ", rate_, ", expected a number from 0 to 1")));
    return Value();
  }
  if (!context.training || rate_ == 0) return x;
  if (rate_ == 1) return ZerosLike(x);
  const uint64_t layer_seed = FoldIn(seed_ != 0 ? seed_ : context.seed, path());
  const Value seed =
      FoldInSeed(StepSeed(*x.builder()), static_cast<int64_t>(layer_seed));
  return internal::DropWithNoiseShape(x, seed, rate_, noise_shape_, "Dropout");
}

LayerPtr Dropout(double rate, const DropoutOptions& options) {
  return std::make_shared<DropoutLayer>(rate, options);
}

}  // namespace muster
