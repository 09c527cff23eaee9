#include "common/learn/nn/classification_losses.h"

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/loss_options.h"
#include "common/learn/nn/sample_weights.h"

namespace muster {
namespace {

using internal::AlignLabels;
using internal::kEpsilon;
using internal::MeanOfFeatures;

// `labels`, with -1 for 0 if all of them are 0 or 1.
Value SignedLabels(Value labels) {
  const Value is_binary = LogicalOr(Equal(labels, 0.0), Equal(labels, 1.0));
  const Value all_are_binary = Min(Cast(is_binary, DType::kFloat32)) > 0.5;
  return Select(all_are_binary, 2.0 * labels - 1.0, labels);
}

Value MarginsMissed(Value y_true, Value y_pred) {
  const Value labels = SignedLabels(AlignLabels(y_true, y_pred));
  return Maximum(1.0 - labels * y_pred, 0.0);
}

Value SumOver(Value x, const std::vector<int64_t>& axes) {
  return axes.empty() ? Sum(x) : Sum(x, axes);
}

}  // namespace

void DiceOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit(Described("axis", "The axes to sum over; all when absent."),
                axis);
  internal::VisitReduction(visitor, reduction);
}

void TverskyOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("alpha", alpha);
  visitor.Visit("beta", beta);
  visitor.Visit(Described("axis", "The axes to sum over; all when absent."),
                axis);
  internal::VisitReduction(visitor, reduction);
}

Loss Hinge(const LossOptions& options) {
  return Loss(
             "hinge",
             [](Value y_true, Value y_pred) {
               return MeanOfFeatures(MarginsMissed(y_true, y_pred));
             },
             options.reduction)
      .WithOptions(options);
}

Loss SquaredHinge(const LossOptions& options) {
  return Loss(
             "squared_hinge",
             [](Value y_true, Value y_pred) {
               return MeanOfFeatures(Square(MarginsMissed(y_true, y_pred)));
             },
             options.reduction)
      .WithOptions(options);
}

Loss CategoricalHinge(const LossOptions& options) {
  return Loss(
             "categorical_hinge",
             [](Value y_true, Value y_pred) {
               y_true = AlignLabels(y_true, y_pred);
               const Value right = Sum(y_true * y_pred, {-1});
               const Value wrong = Max((1.0 - y_true) * y_pred, {-1});
               return Maximum(wrong - right + 1.0, 0.0);
             },
             options.reduction)
      .WithOptions(options);
}

Loss KLDivergence(const LossOptions& options) {
  return Loss(
             "kl_divergence",
             [](Value y_true, Value y_pred) {
               const auto clip = [](Value x) {
                 return Minimum(Maximum(x, kEpsilon), 1.0);
               };
               const Value labels = clip(AlignLabels(y_true, y_pred));
               return Sum(labels * Log(labels / clip(y_pred)), {-1});
             },
             options.reduction)
      .WithOptions(options);
}

Loss Dice(const DiceOptions& options) {
  return Loss(
             "dice",
             [axes = options.axis](Value y_true, Value y_pred) {
               y_true = AlignLabels(y_true, y_pred);
               const Value total =
                   SumOver(y_true, axes) + SumOver(y_pred, axes);
               return 1.0 -
                      2.0 * SumOver(y_true * y_pred, axes) / (total + kEpsilon);
             },
             options.reduction)
      .WithOptions(options);
}

Loss Tversky(const TverskyOptions& options) {
  return Loss(
             "tversky",
             [options](Value y_true, Value y_pred) {
               y_true = AlignLabels(y_true, y_pred);
               const auto sum = [&](Value x) {
                 return SumOver(x, options.axis);
               };
               const Value overlap = sum(y_true * y_pred);
               const Value missed = sum(y_true * (1.0 - y_pred));
               const Value invented = sum((1.0 - y_true) * y_pred);
               return 1.0 - overlap / (overlap + missed * options.alpha +
                                       invented * options.beta + kEpsilon);
             },
             options.reduction)
      .WithOptions(options);
}

}  // namespace muster
