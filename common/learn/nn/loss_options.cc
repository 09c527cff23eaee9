#include "common/learn/nn/loss_options.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/loss.h"

namespace muster {

void LossOptions::VisitConfig(ConfigVisitor& visitor) {
  internal::VisitReduction(visitor, reduction);
}

namespace internal {

void VisitReduction(ConfigVisitor& visitor, Reduction& reduction) {
  // In the order of Reduction.
  static constexpr absl::string_view kNames[] = {"sum_over_batch_size", "sum",
                                                 "none"};
  visitor.Visit("reduction", reduction, kNames);
}

Value MeanOfFeatures(Value x) {
  return x.ok() && x.shape().rank() > 1 ? Mean(x, {-1}) : x;
}

Value ClipProbabilities(Value x) {
  return Minimum(Maximum(x, kEpsilon), 1 - kEpsilon);
}

bool HasClasses(Value y_pred, absl::string_view loss) {
  if (!y_pred.ok()) return false;
  const Shape& shape = y_pred.shape();
  if (shape.rank() > 0 && shape.dims().back() != Shape::kUnknown) return true;
  y_pred.builder()->ReportError(absl::InvalidArgumentError(
      absl::StrCat(loss, ": expected predictions [batch, classes], got ",
                   y_pred.type().ToString())));
  return false;
}

Value NormalizeL2(Value x, int64_t axis) {
  const Value squared_norm = Sum(Square(x), {axis}, {.keep_dims = true});
  return x * Rsqrt(Maximum(squared_norm, kEpsilon * kEpsilon));
}

}  // namespace internal
}  // namespace muster
