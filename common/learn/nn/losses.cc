#include "common/learn/nn/losses.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/log.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/sample_weights.h"

namespace muster {
namespace {

using internal::AlignLabels;
using internal::AlignSparseLabels;

// Keras' keras.config.epsilon(): probabilities stay this far from 0 and 1.
constexpr double kEpsilon = 1e-7;

// In the order of Reduction.
constexpr absl::string_view kReductionNames[] = {"sum_over_batch_size", "sum",
                                                 "none"};

Value ClipProbabilities(Value x) {
  return Minimum(Maximum(x, kEpsilon), 1 - kEpsilon);
}

// Whether the predictions have a known number of classes; reports if not.
bool HasClasses(Value y_pred, absl::string_view loss) {
  if (!y_pred.ok()) return false;
  const Shape& shape = y_pred.shape();
  if (shape.rank() > 0 && shape.dims().back() != Shape::kUnknown) return true;
  y_pred.builder()->ReportError(absl::InvalidArgumentError(
      absl::StrCat(loss, ": expected predictions [batch, classes], got ",
                   y_pred.type().ToString())));
  return false;
}

// What the activation `op` computed `y_pred` from; of no graph where `y_pred`
// comes from elsewhere. Looks through conversions between floating types.
Value ActivationInput(Value y_pred, absl::string_view op) {
  const Graph& graph = y_pred.builder()->graph();
  const auto is_floating = [&](NodeOutput output) {
    return IsFloating(graph.TypeOf(output).dtype);
  };
  NodeOutput output = y_pred.output();
  while (graph.nodes[output.node].op == "Cast" &&
         is_floating(graph.nodes[output.node].inputs[0])) {
    output = graph.nodes[output.node].inputs[0];
  }
  const Node& node = graph.nodes[output.node];
  if (node.op != op) return Value();
  return Cast(y_pred.builder()->ValueOf(node.inputs[0]), y_pred.dtype());
}

// The logits that `y_pred` is or was computed from by the activation `op`; of
// no graph where there are only probabilities.
Value LogitsOf(Value y_pred, bool from_logits, absl::string_view op,
               absl::string_view loss) {
  if (!y_pred.ok()) return Value();
  const Value input = ActivationInput(y_pred, op);
  const bool is_activated = input.builder() != nullptr;
  if (from_logits && is_activated) {
    LOG(WARNING) << loss << ": from_logits is true, but the predictions are "
                 << "the output of " << op << " and no logits. The loss is "
                 << "taken of its input. Leave out the activation or "
                 << "from_logits";
  }
  if (is_activated) return input;
  return from_logits ? y_pred : Value();
}

// Means over the features; predictions without any are their own mean.
Value MeanOfFeatures(Value x) {
  return x.ok() && x.shape().rank() > 1 ? Mean(x, {-1}) : x;
}

Value BinaryCrossentropyOf(Value y_true, Value y_pred,
                           const CrossentropyOptions& options) {
  y_true = AlignLabels(y_true, y_pred);
  if (options.label_smoothing > 0) {
    y_true =
        y_true * (1 - options.label_smoothing) + 0.5 * options.label_smoothing;
  }
  const Value logits =
      LogitsOf(y_pred, options.from_logits, "Sigmoid", "binary_crossentropy");
  if (logits.ok()) return MeanOfFeatures(SigmoidCrossEntropy(logits, y_true));
  y_pred = ClipProbabilities(y_pred);
  return MeanOfFeatures(
      -(y_true * Log(y_pred) + (1.0 - y_true) * Log(1.0 - y_pred)));
}

Value CategoricalCrossentropyOf(Value y_true, Value y_pred,
                                const CrossentropyOptions& options) {
  if (!HasClasses(y_pred, "categorical_crossentropy")) return Value();
  y_true = AlignLabels(y_true, y_pred);
  if (options.label_smoothing > 0) {
    const double class_count =
        static_cast<double>(y_pred.shape().dims().back());
    y_true = y_true * (1 - options.label_smoothing) +
             options.label_smoothing / class_count;
  }
  const Value logits = LogitsOf(y_pred, options.from_logits, "Softmax",
                                "categorical_crossentropy");
  if (logits.ok()) return SoftmaxCrossEntropy(logits, y_true);
  y_pred = y_pred / Sum(y_pred, {-1}, {.keep_dims = true});
  return -Sum(y_true * Log(ClipProbabilities(y_pred)), {-1});
}

Value SparseCrossentropyOf(Value y_true, Value y_pred, bool from_logits) {
  if (!HasClasses(y_pred, "sparse_categorical_crossentropy")) return Value();
  y_true = AlignSparseLabels(y_true, y_pred);
  Value logits = LogitsOf(y_pred, from_logits, "Softmax",
                          "sparse_categorical_crossentropy");
  // Normalizes once more, as Keras does.
  if (!logits.ok()) logits = Log(ClipProbabilities(y_pred));
  return SparseSoftmaxCrossEntropy(logits, y_true);
}

}  // namespace

void LossOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("reduction", reduction, kReductionNames);
}

void CrossentropyOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("from_logits", from_logits);
  visitor.Visit("label_smoothing", label_smoothing);
  visitor.Visit("reduction", reduction, kReductionNames);
}

void SparseCrossentropyOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("from_logits", from_logits);
  visitor.Visit("ignore_class", ignore_class);
  visitor.Visit("reduction", reduction, kReductionNames);
}

Loss MeanSquaredError(const LossOptions& options) {
  return Loss(
             "mean_squared_error",
             [](Value y_true, Value y_pred) {
               return MeanOfFeatures(
                   SquaredDifference(y_pred, AlignLabels(y_true, y_pred)));
             },
             options.reduction)
      .WithOptions(options);
}

Loss MeanAbsoluteError(const LossOptions& options) {
  return Loss(
             "mean_absolute_error",
             [](Value y_true, Value y_pred) {
               return MeanOfFeatures(Abs(y_pred - AlignLabels(y_true, y_pred)));
             },
             options.reduction)
      .WithOptions(options);
}

Loss BinaryCrossentropy(const CrossentropyOptions& options) {
  return Loss(
             "binary_crossentropy",
             [options](Value y_true, Value y_pred) {
               return BinaryCrossentropyOf(y_true, y_pred, options);
             },
             options.reduction)
      .WithOptions(options);
}

Loss CategoricalCrossentropy(const CrossentropyOptions& options) {
  return Loss(
             "categorical_crossentropy",
             [options](Value y_true, Value y_pred) {
               return CategoricalCrossentropyOf(y_true, y_pred, options);
             },
             options.reduction)
      .WithOptions(options);
}

Loss SparseCategoricalCrossentropy(const SparseCrossentropyOptions& options) {
  const Loss loss(
      "sparse_categorical_crossentropy",
      [from_logits = options.from_logits](Value y_true, Value y_pred) {
        return SparseCrossentropyOf(y_true, y_pred, from_logits);
      },
      options.reduction);
  return (options.ignore_class.has_value()
              ? loss.IgnoringClass(*options.ignore_class)
              : loss)
      .WithOptions(options);
}

}  // namespace muster
