#include "common/learn/nn/circle_loss.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/loss_options.h"

namespace muster {
namespace {

// The logarithm of nothing; finite, because gradients of infinities are not
// numbers.
constexpr double kNothing = -1e30;

// 0, 1, ... one number for each row of labels [batch, 1].
Value RowNumbers(Value labels) {
  const Value zero = labels.builder()->Constant(Tensor::Scalar<float>(0));
  return Scan({zero}, {labels},
              [](const ScanStep& step) {
                return ScanStep{.carry = {step.carry[0] + 1.0},
                                .rows = {step.carry[0]}};
              })
      .rows[0];
}

// The log of the sum of exp(x) over the columns where `counts` is true.
Value LogSumExp(Value x, Value counts) {
  x = Select(counts, x, ZerosLike(x) + kNothing);
  const Value greatest = StopGradient(Max(x, {1}, {.keep_dims = true}));
  return Squeeze(
      greatest + Log(Sum(Exp(x - greatest), {1}, {.keep_dims = true})), {1});
}

Value CircleLossOfExamples(Value y_true, Value y_pred,
                           const CircleOptions& options) {
  if (!y_true.ok() || !y_pred.ok()) return Value();
  const int label_rank = y_true.shape().rank();
  const bool are_labels =
      label_rank == 1 || (label_rank == 2 && y_true.shape().dim(1) == 1);
  if (!are_labels || y_pred.shape().rank() != 2) {
    y_pred.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        "circle: expected labels [batch] and embeddings [batch, size], got ",
        y_true.type().ToString(), " and ", y_pred.type().ToString())));
    return Value();
  }
  const Value labels = Reshape(Cast(y_true, DType::kInt64), {-1, 1});
  const Value is_equal = Equal(labels, Transpose(labels));
  Value is_positive = is_equal;
  if (options.remove_diagonal) {
    const Value rows = RowNumbers(labels);
    is_positive = LogicalAnd(
        is_equal, NotEqual(ExpandDims(rows, 1), ExpandDims(rows, 0)));
  }
  const double margin = options.margin;
  const Value distance = Maximum(1.0 - MatMul(y_pred, Transpose(y_pred)), 0.0);
  const Value positive =
      Maximum(distance + margin, 0.0) * (margin - distance) * -options.gamma;
  const Value negative = Maximum(1 + margin - distance, 0.0) *
                         (1 - margin - distance) * options.gamma;
  return Softplus(LogSumExp(positive, is_positive) +
                  LogSumExp(negative, LogicalNot(is_equal)));
}

}  // namespace

void CircleOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("gamma", gamma);
  visitor.Visit("margin", margin);
  visitor.Visit("remove_diagonal", remove_diagonal);
  internal::VisitReduction(visitor, reduction);
}

Loss Circle(const CircleOptions& options) {
  return Loss(
             "circle",
             [options](Value y_true, Value y_pred) {
               return CircleLossOfExamples(y_true, y_pred, options);
             },
             options.reduction)
      .CountingPositive()
      .WithOptions(options);
}

}  // namespace muster
