#include "common/learn/nn/ctc_loss.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/loss_options.h"

namespace muster {
namespace {

// The logarithm of no probability. A finite number, because gradients of
// infinities are not numbers.
constexpr double kNever = -1e30;

Value NeverLike(Value x) { return ZerosLike(x) + kNever; }

// log(exp(a) + exp(b)).
Value LogAdd(Value a, Value b) {
  const Value greatest = StopGradient(Maximum(a, b));
  return greatest + Log(Exp(a - greatest) + Exp(b - greatest));
}

// The log-probabilities of being, after a step, in each state of an example:
// before label i or behind the last one, in blanks; and at label i.
struct States {
  Value blanks;  // [batch, length + 1]
  Value labels;  // [batch, length]
};

class Recursion {
 public:
  // `labels` is int64 [batch, length].
  Recursion(Value labels, Value log_probabilities) : labels_(labels) {
    const Value first_label = Slice(labels, {0, 0}, {-1, 1});
    const Value before = ShiftedLabels(first_label);
    // A blank must be between equal labels.
    const Value differs = NotEqual(labels, before);
    const Value zeros = Cast(ZerosLike(labels), log_probabilities.dtype());
    may_skip_ = Select(differs, zeros, NeverLike(zeros));
    const Value column =
        Cast(ZerosLike(first_label), log_probabilities.dtype());
    never_column_ = NeverLike(column);
    // Before the first step all is before the first label.
    first_ = {.blanks = Concat({column, NeverLike(zeros)}, 1),
              .labels = NeverLike(zeros)};
  }

  const States& first() const { return first_; }

  // `step` is [batch, classes].
  States Next(const States& states, Value step) const {
    // Of the label before each blank, and before each label.
    const Value label_before = BehindLabels(states);
    const Value blank =
        LogAdd(states.blanks, label_before) + Slice(step, {0, 0}, {-1, 1});
    const Value from_blank = SliceLike(states.blanks, states.labels, {0, 0});
    const Value skipped =
        SliceLike(label_before, states.labels, {0, 0}) + may_skip_;
    const Value label = LogAdd(LogAdd(states.labels, from_blank), skipped) +
                        TakeAlongRows(step, labels_);
    return {.blanks = blank, .labels = label};
  }

  // The loss [batch] after the last step.
  Value LossOf(const States& states) const {
    const Value is_label = Cast(NotEqual(labels_, 0), DType::kInt64);
    const Value count = Sum(is_label, {1}, {.keep_dims = true});
    const Value total = LogAdd(TakeAlongRows(states.blanks, count),
                               TakeAlongRows(BehindLabels(states), count));
    const Value loss = -Squeeze(total, {1});
    const Value infinity = OnesLike(loss) / ZerosLike(loss);
    return Select(loss > -kNever / 2, infinity, loss);
  }

 private:
  // Each label's predecessor; before the first one stands a blank.
  Value ShiftedLabels(Value first_label) const {
    return SliceLike(Concat({ZerosLike(first_label), labels_}, 1), labels_,
                     {0, 0});
  }
  // [batch, length + 1]: entry i is the state of label i - 1.
  Value BehindLabels(const States& states) const {
    return Concat({never_column_, states.labels}, 1);
  }

  Value labels_;
  Value may_skip_;      // [batch, length]: 0, or never.
  Value never_column_;  // [batch, 1]
  States first_;
};

Value CtcLossOfExamples(Value y_true, Value y_pred) {
  if (!y_true.ok() || !y_pred.ok()) return Value();
  if (y_true.shape().rank() != 2 || y_pred.shape().rank() != 3 ||
      y_pred.shape().dim(2) == Shape::kUnknown) {
    y_pred.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        "ctc: expected labels [batch, length] and logits [batch, time, "
        "classes] with a known number of classes, got ",
        y_true.type().ToString(), " and ", y_pred.type().ToString())));
    return Value();
  }
  const Value log_probabilities = LogSoftmax(y_pred);
  const Recursion recursion(Cast(y_true, DType::kInt64), log_probabilities);
  const ScanStep last = Scan(
      {recursion.first().blanks, recursion.first().labels},
      {Transpose(log_probabilities, {1, 0, 2})}, [&](const ScanStep& step) {
        const States next = recursion.Next(
            {.blanks = step.carry[0], .labels = step.carry[1]}, step.rows[0]);
        return ScanStep{.carry = {next.blanks, next.labels}, .rows = {}};
      });
  return recursion.LossOf({.blanks = last.carry[0], .labels = last.carry[1]});
}

}  // namespace

Loss CTC(const LossOptions& options) {
  return Loss("ctc", CtcLossOfExamples, options.reduction).WithOptions(options);
}

}  // namespace muster
