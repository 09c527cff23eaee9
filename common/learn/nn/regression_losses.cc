#include "common/learn/nn/regression_losses.h"

#include <cmath>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/loss_options.h"
#include "common/learn/nn/sample_weights.h"

namespace muster {
namespace {

using internal::AlignLabels;
using internal::kEpsilon;
using internal::MeanOfFeatures;

// The mean over the features of error(y_true, y_pred), which is elementwise.
template <typename Error>
Loss MeanOfErrors(absl::string_view name, Reduction reduction, Error error) {
  return Loss(
      name,
      [error](Value y_true, Value y_pred) {
        return MeanOfFeatures(error(AlignLabels(y_true, y_pred), y_pred));
      },
      reduction);
}

bool IsAxisOfFeatures(int64_t axis, Value y_pred) {
  if (!y_pred.ok()) return false;
  const int64_t rank = y_pred.shape().rank();
  const int64_t position = axis < 0 ? axis + rank : axis;
  if (position > 0 && position < rank) return true;
  y_pred.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
      "cosine_similarity: axis is ", axis, "; expected an axis of ",
      y_pred.type().ToString(), " other than the first, which is the batch")));
  return false;
}

}  // namespace

void HuberOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("delta", delta);
  internal::VisitReduction(visitor, reduction);
}

void CosineSimilarityOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("axis", axis);
  internal::VisitReduction(visitor, reduction);
}

Loss MeanSquaredError(const LossOptions& options) {
  return MeanOfErrors("mean_squared_error", options.reduction,
                      [](Value y_true, Value y_pred) {
                        return SquaredDifference(y_pred, y_true);
                      })
      .WithOptions(options);
}

Loss MeanAbsoluteError(const LossOptions& options) {
  return MeanOfErrors(
             "mean_absolute_error", options.reduction,
             [](Value y_true, Value y_pred) { return Abs(y_pred - y_true); })
      .WithOptions(options);
}

Loss MeanAbsolutePercentageError(const LossOptions& options) {
  return MeanOfErrors("mean_absolute_percentage_error", options.reduction,
                      [](Value y_true, Value y_pred) {
                        return 100.0 * Abs((y_true - y_pred) /
                                           Maximum(Abs(y_true), kEpsilon));
                      })
      .WithOptions(options);
}

Loss MeanSquaredLogarithmicError(const LossOptions& options) {
  return MeanOfErrors("mean_squared_logarithmic_error", options.reduction,
                      [](Value y_true, Value y_pred) {
                        return SquaredDifference(
                            Log(Maximum(y_pred, kEpsilon) + 1.0),
                            Log(Maximum(y_true, kEpsilon) + 1.0));
                      })
      .WithOptions(options);
}

Loss Huber(const HuberOptions& options) {
  return MeanOfErrors("huber", options.reduction,
                      [delta = options.delta](Value y_true, Value y_pred) {
                        const Value error = y_pred - y_true;
                        const Value size = Abs(error);
                        return Select(size <= delta, 0.5 * Square(error),
                                      delta * size - 0.5 * delta * delta);
                      })
      .WithOptions(options);
}

Loss LogCosh(const LossOptions& options) {
  return MeanOfErrors("log_cosh", options.reduction,
                      [](Value y_true, Value y_pred) {
                        const Value error = y_pred - y_true;
                        return error + Softplus(error * -2.0) - std::log(2.0);
                      })
      .WithOptions(options);
}

Loss CosineSimilarity(const CosineSimilarityOptions& options) {
  return Loss(
             "cosine_similarity",
             [axis = options.axis](Value y_true, Value y_pred) {
               if (!IsAxisOfFeatures(axis, y_pred)) return Value();
               return -Sum(
                   internal::NormalizeL2(AlignLabels(y_true, y_pred), axis) *
                       internal::NormalizeL2(y_pred, axis),
                   {axis});
             },
             options.reduction)
      .WithOptions(options);
}

Loss Poisson(const LossOptions& options) {
  return MeanOfErrors("poisson", options.reduction,
                      [](Value y_true, Value y_pred) {
                        return y_pred - y_true * Log(y_pred + kEpsilon);
                      })
      .WithOptions(options);
}

}  // namespace muster
