#include "common/learn/nn/layers/reshape.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/shape_ops.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"

namespace muster {
namespace {

// Returns the extent that -1 stands for, so that the batch can be the only
// unknown extent. Returns -1 if it is unknown or not a whole number.
int64_t ExtentLeft(const Shape& input, const std::vector<int64_t>& target) {
  int64_t count = 1;
  for (const int64_t extent : input.dims().subspan(1)) {
    if (extent == Shape::kUnknown) return Shape::kUnknown;
    count *= extent;
  }
  int64_t known = 1;
  for (const int64_t extent : target) {
    if (extent != -1) known *= extent;
  }
  return known > 0 && count % known == 0 ? count / known : Shape::kUnknown;
}

}  // namespace

void ReshapeLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("target_shape", target_shape_);
}

Value ReshapeLayer::Call(Value x, const CallContext&) {
  const auto report = [&] {
    x.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        "Reshape ", name(), ": cannot reshape ", x.type().ToString(),
        " to [batch, ", absl::StrJoin(target_shape_, ", "), "]")));
    return Value();
  };
  if (x.shape().rank() < 1) return report();
  std::vector<int64_t> shape = {-1};
  const int64_t left = ExtentLeft(x.shape(), target_shape_);
  int64_t count = 1;
  for (const int64_t extent : target_shape_) {
    shape.push_back(extent == -1 ? left : extent);
    if (shape.back() < 0) return report();
    count *= shape.back();
  }
  const Shape& input = x.shape();
  const Shape example(input.dims().subspan(1));
  if (example.IsFullyKnown() && example.element_count() != count) {
    return report();
  }
  return Reshape(x, shape);
}

LayerPtr Reshape(std::vector<int64_t> target_shape,
                 const ReshapeOptions& options) {
  return std::make_shared<ReshapeLayer>(std::move(target_shape), options);
}

void PermuteLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("dims", dims_);
}

Value PermuteLayer::Call(Value x, const CallContext&) {
  std::vector<int64_t> expected(dims_.size());
  std::iota(expected.begin(), expected.end(), 1);
  if (!std::is_permutation(dims_.begin(), dims_.end(), expected.begin(),
                           expected.end()) ||
      x.shape().rank() != static_cast<int>(dims_.size()) + 1) {
    x.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        "Permute ", name(), ": {", absl::StrJoin(dims_, ", "),
        "} is not a permutation of the axes of ", x.type().ToString(),
        ", counted from 1 without the batch")));
    return Value();
  }
  std::vector<int64_t> permutation = {0};
  permutation.insert(permutation.end(), dims_.begin(), dims_.end());
  return Transpose(x, permutation);
}

LayerPtr Permute(std::vector<int64_t> dims, const ReshapeOptions& options) {
  return std::make_shared<PermuteLayer>(std::move(dims), options);
}

}  // namespace muster
