#include "common/learn/nn/loss_options.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/sample_weights.h"

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

namespace {

using internal::AlignWeights;
using internal::HasWeights;

Value Refuse(Value value, absl::string_view why) {
  value.builder()->ReportError(
      absl::InvalidArgumentError(absl::StrCat("ComputeAverageLoss: ", why)));
  return value.builder()->ValueOf(NodeOutput());
}

// The examples of all replicas, at least 1.
Value CountExamples(Value losses) {
  const Value count = AllReduce(CountAlong(losses, {0}), "sum");
  return Cast(Maximum(count, 1.0), losses.dtype());
}

}  // namespace

Value ComputeAverageLoss(Value per_example, const AverageLossOptions& options) {
  if (!per_example.ok()) return per_example;
  if (!IsFloating(per_example.dtype()) || per_example.shape().rank() == 0) {
    return Refuse(per_example,
                  absl::StrCat("expected losses of examples, floats [batch, "
                               "...], got ",
                               per_example.type().ToString(),
                               "; a Loss gives them with Reduction::kNone"));
  }
  if (options.global_batch_size.value_or(1) < 1) {
    return Refuse(per_example, absl::StrCat("global_batch_size is ",
                                            *options.global_batch_size,
                                            "; expected at least 1"));
  }
  Value losses = per_example;
  if (HasWeights(options.sample_weight)) {
    losses = losses * AlignWeights(options.sample_weight, losses);
  }
  if (!options.global_batch_size.has_value()) {
    return Sum(losses) / CountExamples(losses);
  }
  return Sum(losses) / static_cast<double>(*options.global_batch_size);
}

Value ScaleRegularizationLoss(Value loss) {
  if (!loss.ok()) return loss;
  return Sum(loss) / Cast(ReplicaCount(*loss.builder()), loss.dtype());
}

}  // namespace muster
