#include "common/learn/nn/regularizers.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/learn/nn/config_visitor.h"

namespace muster {
namespace {

bool IsFactor(double factor) { return std::isfinite(factor) && factor >= 0; }

Value PenaltyOf(Value weight, const L1L2Options& options) {
  if (!weight.ok()) return weight;
  if (!IsFactor(options.l1) || !IsFactor(options.l2)) {
    weight.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        "regularizer: l1 is ", options.l1, " and l2 is ", options.l2,
        "; both must be finite numbers, not negative")));
    return Value();
  }
  if (options.l1 == 0) return Sum(Square(weight)) * options.l2;
  const Value absolute = Sum(Abs(weight)) * options.l1;
  if (options.l2 == 0) return absolute;
  return absolute + Sum(Square(weight)) * options.l2;
}

}  // namespace

namespace internal {

double VisitedFactor(ConfigVisitor& visitor, const char* name) {
  double factor = 0.01;
  visitor.Visit(name, factor);
  return factor;
}

}  // namespace internal

void L1L2Options::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("l1", l1);
  visitor.Visit("l2", l2);
}

Regularizer L1L2(const L1L2Options& options) {
  return Regularizer(
      [options](Value weight) { return PenaltyOf(weight, options); }, options);
}

Regularizer L1(double l1) { return L1L2({.l1 = l1}); }

Regularizer L2(double l2) { return L1L2({.l2 = l2}); }

}  // namespace muster
