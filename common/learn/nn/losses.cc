#include "common/learn/nn/losses.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/system/log.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/loss_options.h"
#include "common/learn/nn/sample_weights.h"

namespace muster {
namespace {

using internal::AlignLabels;
using internal::AlignSparseLabels;
using internal::ClipProbabilities;
using internal::HasClasses;
using internal::MeanOfFeatures;

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

// Elementwise; `logits` belongs to no graph where there are none.
Value BinaryCrossentropies(Value y_true, Value y_pred, Value logits) {
  if (logits.ok()) return SigmoidCrossEntropy(logits, y_true);
  y_pred = ClipProbabilities(y_pred);
  return -(y_true * Log(y_pred) + (1.0 - y_true) * Log(1.0 - y_pred));
}

Value SmoothBinaryLabels(Value labels, double smoothing) {
  return smoothing > 0 ? labels * (1 - smoothing) + 0.5 * smoothing : labels;
}

// `y_pred` has a known number of classes.
Value SmoothCategoricalLabels(Value labels, Value y_pred, double smoothing) {
  if (smoothing <= 0) return labels;
  const double class_count = static_cast<double>(y_pred.shape().dims().back());
  return labels * (1 - smoothing) + smoothing / class_count;
}

// Probabilities that sum to 1, away from 0 and 1.
Value NormalizeProbabilities(Value y_pred) {
  return ClipProbabilities(y_pred / Sum(y_pred, {-1}, {.keep_dims = true}));
}

// `x` with `axis` moved to the end. Reports an axis that does not exist or is
// that of the batch to the builder, with the name of the loss.
Value MoveToEnd(Value x, int64_t axis, absl::string_view loss) {
  if (!x.ok() || axis == -1) return x;
  const int rank = x.shape().rank();
  const int64_t position = axis < 0 ? axis + rank : axis;
  if (position < 1 || position >= rank) {
    x.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        loss, ": axis is ", axis, ", expected an axis behind that of the ",
        "batch, of predictions ", x.type().ToString())));
    return Value();
  }
  if (position == rank - 1) return x;
  std::vector<int64_t> permutation;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != position) permutation.push_back(i);
  }
  permutation.push_back(position);
  return Transpose(x, permutation);
}

bool IsLast(int64_t axis, Value x) {
  return !x.ok() || axis == -1 || axis == x.shape().rank() - 1;
}

Value BinaryCrossentropyOf(Value y_true, Value y_pred,
                           const CrossentropyOptions& options) {
  y_true =
      SmoothBinaryLabels(AlignLabels(y_true, y_pred), options.label_smoothing);
  const Value logits =
      LogitsOf(y_pred, options.from_logits, "Sigmoid", "binary_crossentropy");
  return MeanOfFeatures(MoveToEnd(BinaryCrossentropies(y_true, y_pred, logits),
                                  options.axis, "binary_crossentropy"));
}

Value BinaryFocalCrossentropyOf(Value y_true, Value y_pred,
                                const BinaryFocalOptions& options) {
  y_true =
      SmoothBinaryLabels(AlignLabels(y_true, y_pred), options.label_smoothing);
  const Value logits = LogitsOf(y_pred, options.from_logits, "Sigmoid",
                                "binary_focal_crossentropy");
  if (options.from_logits) y_pred = Sigmoid(y_pred);
  const Value p = y_true * y_pred + (1.0 - y_true) * (1.0 - y_pred);
  Value losses = Pow(1.0 - p, options.gamma) *
                 BinaryCrossentropies(y_true, y_pred, logits);
  if (options.apply_class_balancing) {
    losses = losses *
             (y_true * options.alpha + (1.0 - y_true) * (1 - options.alpha));
  }
  return MeanOfFeatures(
      MoveToEnd(losses, options.axis, "binary_focal_crossentropy"));
}

Value CategoricalCrossentropyOf(Value y_true, Value y_pred,
                                const CrossentropyOptions& options) {
  constexpr absl::string_view kLoss = "categorical_crossentropy";
  if (!HasClasses(y_pred, kLoss)) return Value();
  // Keras divides by the last extent, whatever the axis is.
  y_true = SmoothCategoricalLabels(AlignLabels(y_true, y_pred), y_pred,
                                   options.label_smoothing);
  if (!IsLast(options.axis, y_pred)) {
    y_true = MoveToEnd(y_true, options.axis, kLoss);
    y_pred = MoveToEnd(y_pred, options.axis, kLoss);
  }
  const Value logits = LogitsOf(y_pred, options.from_logits, "Softmax", kLoss);
  if (logits.ok()) return SoftmaxCrossEntropy(logits, y_true);
  return -Sum(y_true * Log(NormalizeProbabilities(y_pred)), {-1});
}

Value CategoricalFocalCrossentropyOf(Value y_true, Value y_pred,
                                     const CategoricalFocalOptions& options) {
  constexpr absl::string_view kLoss = "categorical_focal_crossentropy";
  if (!HasClasses(y_pred, kLoss)) return Value();
  y_true = SmoothCategoricalLabels(AlignLabels(y_true, y_pred), y_pred,
                                   options.label_smoothing);
  y_true = MoveToEnd(y_true, options.axis, kLoss);
  y_pred = MoveToEnd(y_pred, options.axis, kLoss);
  if (options.from_logits) y_pred = Softmax(y_pred);
  const Value p = NormalizeProbabilities(y_pred);
  const Value weights = Pow(1.0 - p, options.gamma) * options.alpha;
  return -Sum(weights * y_true * Log(p), {-1});
}

Value SparseCrossentropyOf(Value y_true, Value y_pred, bool from_logits,
                           int64_t axis) {
  y_pred = MoveToEnd(y_pred, axis, "sparse_categorical_crossentropy");
  if (!HasClasses(y_pred, "sparse_categorical_crossentropy")) return Value();
  y_true = AlignSparseLabels(y_true, y_pred);
  Value logits = LogitsOf(y_pred, from_logits, "Softmax",
                          "sparse_categorical_crossentropy");
  // Normalizes once more, as Keras does.
  if (!logits.ok()) logits = Log(ClipProbabilities(y_pred));
  return SparseSoftmaxCrossEntropy(logits, y_true);
}

}  // namespace

void GeneralizedCrossentropyOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("q", q);
  internal::VisitReduction(visitor, reduction);
}

void CrossentropyOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("from_logits", from_logits);
  visitor.Visit("label_smoothing", label_smoothing);
  visitor.Visit(Described("axis", "The axis of the classes."), axis);
  internal::VisitReduction(visitor, reduction);
}

void SparseCrossentropyOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("from_logits", from_logits);
  visitor.Visit(Described("ignore_class", "Labels that do not count."),
                ignore_class);
  visitor.Visit(Described("axis", "The axis of the classes."), axis);
  internal::VisitReduction(visitor, reduction);
}

void BinaryFocalOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("apply_class_balancing", apply_class_balancing);
  visitor.Visit("alpha", alpha);
  visitor.Visit("gamma", gamma);
  visitor.Visit("from_logits", from_logits);
  visitor.Visit("label_smoothing", label_smoothing);
  visitor.Visit(Described("axis", "The axis of the classes."), axis);
  internal::VisitReduction(visitor, reduction);
}

void CategoricalFocalOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("alpha", alpha);
  visitor.Visit("gamma", gamma);
  visitor.Visit("from_logits", from_logits);
  visitor.Visit("label_smoothing", label_smoothing);
  visitor.Visit(Described("axis", "The axis of the classes."), axis);
  internal::VisitReduction(visitor, reduction);
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

Loss BinaryFocalCrossentropy(const BinaryFocalOptions& options) {
  return Loss(
             "binary_focal_crossentropy",
             [options](Value y_true, Value y_pred) {
               return BinaryFocalCrossentropyOf(y_true, y_pred, options);
             },
             options.reduction)
      .WithOptions(options);
}

Loss CategoricalFocalCrossentropy(const CategoricalFocalOptions& options) {
  return Loss(
             "categorical_focal_crossentropy",
             [options](Value y_true, Value y_pred) {
               return CategoricalFocalCrossentropyOf(y_true, y_pred, options);
             },
             options.reduction)
      .WithOptions(options);
}

Loss Crossentropy() {
  return Loss("crossentropy", [](Value y_true, Value y_pred) {
    if (internal::IsBinary(y_pred)) {
      return BinaryCrossentropyOf(y_true, y_pred, {});
    }
    return internal::IsSparse(y_true, y_pred)
               ? SparseCrossentropyOf(y_true, y_pred, /*from_logits=*/false,
                                      /*axis=*/-1)
               : CategoricalCrossentropyOf(y_true, y_pred, {});
  });
}

Loss CategoricalGeneralizedCrossEntropy(
    const GeneralizedCrossentropyOptions& options) {
  return Loss(
             "categorical_generalized_cross_entropy",
             [q = options.q](Value y_true, Value y_pred) {
               if (!HasClasses(y_pred,
                               "categorical_generalized_cross_entropy")) {
                 return Value();
               }
               if (!(q > 0 && q < 1)) {
                 y_pred.builder()->ReportError(
                     absl::InvalidArgumentError(absl::StrCat(
                         "categorical_generalized_cross_entropy: q is ", q,
                         ", expected a number between 0 and 1")));
                 return Value();
               }
               const Value labels =
                   Cast(AlignSparseLabels(y_true, y_pred), DType::kInt64);
               const Value is_label =
                   OneHot(labels, y_pred.shape().dims().back(),
                          {.dtype = y_pred.dtype()});
               const Value p = Sum(y_pred * is_label, {-1});
               return (1.0 - Pow(p, q)) / q;
             },
             options.reduction)
      .WithOptions(options);
}

Loss SparseCategoricalCrossentropy(const SparseCrossentropyOptions& options) {
  const Loss loss(
      "sparse_categorical_crossentropy",
      [from_logits = options.from_logits, axis = options.axis](Value y_true,
                                                               Value y_pred) {
        return SparseCrossentropyOf(y_true, y_pred, from_logits, axis);
      },
      options.reduction);
  return (options.ignore_class.has_value()
              ? loss.IgnoringClass(*options.ignore_class)
              : loss)
      .WithOptions(options);
}

}  // namespace muster
