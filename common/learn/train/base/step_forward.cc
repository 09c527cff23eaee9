#include "common/learn/train/base/step_forward.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/masks.h"
#include "common/learn/nn/metric.h"
#include "common/learn/nn/weight.h"
#include "common/learn/train/base/class_weights.h"
#include "common/learn/train/base/custom_step.h"
#include "common/learn/train/base/step_parts.h"
#include "common/learn/train/base/step_results.h"

namespace muster {
namespace {

// The weight of an example of which all positions are masked or ignored. It
// keeps penalties effective in a batch of only such examples. Next to other
// examples it is smaller than a rounding error.
constexpr double kIgnoredExampleWeight = 1e-9;

bool IsMean(const Loss::Counted& counted) {
  return counted.example_count.builder() != nullptr;
}

// Returns a hint about labels that should have the shape of the predictions;
// empty if none applies.
std::string LabelHint(const Shape& labels, const Shape& predictions) {
  if (predictions.rank() == 0 || predictions.dims().back() < 2) return "";
  const int64_t units = predictions.dims().back();
  if (labels.rank() + 1 == predictions.rank()) {
    return absl::StrCat(
        "each example has 1 label, and the model predicts ", units,
        " numbers for it. If the label is the number of a class, use the loss "
        "sparse_categorical_crossentropy. If it is a value to predict, give "
        "the "
        "last layer 1 unit");
  }
  if (labels.rank() == predictions.rank() && labels.dims().back() != units) {
    const int64_t label_count = labels.dims().back();
    return absl::StrCat("the model predicts ", units,
                        " numbers for each example, and its label has ",
                        label_count, ". Give the last layer ", label_count,
                        label_count == 1 ? " unit" : " units");
  }
  return "";
}

// Returns a hint about labels of a loss that expects the numbers of classes;
// empty if none applies.
std::string ClassLabelHint(const Shape& labels, const Shape& predictions) {
  if (labels != predictions || labels.rank() < 2 || labels.dims().back() < 2) {
    return "";
  }
  return absl::StrCat("each label has ", labels.dims().back(),
                      " numbers, as one-hot labels have, and the loss expects "
                      "the number of a class. Use the loss "
                      "categorical_crossentropy");
}

// Replaces an unknown number of examples by the same number in both types.
void SetExampleCount(TensorType* a, TensorType* b) {
  // Unlikely to be the extent of another axis.
  constexpr int64_t kCount = 999983;
  const auto count_of = [](const TensorType& type) {
    return type.shape.rank() == 0 ? Shape::kUnknown : type.shape.dim(0);
  };
  int64_t count = count_of(*a);
  if (count == Shape::kUnknown) count = count_of(*b);
  if (count == Shape::kUnknown) count = kCount;
  for (TensorType* const type : {a, b}) {
    std::vector<int64_t> dims(type->shape.dims().begin(),
                              type->shape.dims().end());
    if (!dims.empty() && dims[0] == Shape::kUnknown) dims[0] = count;
    type->shape = Shape(dims);
  }
}

// Returns the result of a loss in the format of StepResults::losses.
Value LossResult(Value loss, Value mean_over, Value example_count) {
  const Value value = Cast(loss, DType::kFloat32);
  return mean_over.builder() == nullptr
             ? Stack({value, ZerosLike(example_count), example_count}, 0)
             : Stack({value * mean_over, mean_over, example_count}, 0);
}

// Access to the inputs, labels and weights of an element.
class StepElement {
 public:
  StepElement(const ElementLayout& layout, absl::Span<const Value> element)
      : layout_(layout), element_(element) {}

  absl::Span<const Value> inputs() const {
    return element_.subspan(0, layout_.input_count);
  }
  Value labels(size_t output) const {
    return element_[layout_.input_count + output];
  }
  // Returns a Value without a graph if there are no weights.
  Value weights(size_t output) const {
    if (layout_.weight_count == 0) return Value();
    const size_t first = layout_.input_count + layout_.output_count;
    return element_[layout_.weight_count == 1 ? first : first + output];
  }

 private:
  const ElementLayout& layout_;
  const absl::Span<const Value> element_;
};

class Forward {
 public:
  Forward(GraphBuilder& builder, const StepParts& parts,
          const StepElement& element, bool training)
      : builder_(builder), parts_(parts), element_(element) {
    Masks masks;
    predictions_ =
        parts.layer->CallAll(element.inputs(), {.training = training,
                                                .seed = parts.seed,
                                                .masks = &masks,
                                                .losses = &added_losses_});
    predictions_.resize(parts.outputs.size());
    for (size_t i = 0; i < parts.outputs.size(); ++i) {
      masks_.push_back(masks.Find(predictions_[i]));
      weights_.push_back(element.weights(i));
    }
    if (training && !parts.class_weights.empty()) AddClassWeights();
  }

  StepForward Trace() {
    const Value example_count = CountAlong(element_.inputs().front(), {0});
    AddLosses();
    AddTotal(example_count);
    if (parts_.outputs.size() > 1) AddLossesOfOutputs(example_count);
    for (size_t i = 0; i < parts_.outputs.size(); ++i) AddMetrics(i);
    return forward_;
  }

 private:
  void AddClassWeights() {
    const GraphBuilder::NameScope scope(&builder_, "class_weight");
    const Value weights =
        WeightsOfLabels(element_.labels(0), parts_.class_weights);
    weights_[0] = weights_[0].builder() == nullptr
                      ? weights
                      : Cast(weights_[0], DType::kFloat32) * weights;
  }

  std::string LossName(size_t output) const {
    return parts_.outputs.size() == 1
               ? "loss"
               : absl::StrCat(parts_.outputs[output].name, "_loss");
  }

  // Reports labels that do not fit the predictions, in terms of the model. The
  // loss's own error names operations, and may occur only when the step is
  // compiled if the number of examples is unknown. Checks Muster's own losses
  // only: a loss of the program may use values of the step.
  void CheckLabels(size_t output) {
    const Loss& loss = parts_.outputs[output].loss;
    const Value labels = element_.labels(output);
    const Value predictions = predictions_[output];
    if (!loss.visit_options() || !labels.ok() || !predictions.ok()) return;
    TensorType label_type = labels.type();
    TensorType prediction_type = predictions.type();
    SetExampleCount(&label_type, &prediction_type);
    if (!label_type.shape.IsFullyKnown() ||
        !prediction_type.shape.IsFullyKnown()) {
      return;
    }
    const auto computed_of = [&](const TensorType& labels_as) {
      GraphBuilder trial(&builder_.registry(), "labels");
      loss.WithCount(trial.Parameter("labels", labels_as),
                     trial.Parameter("predictions", prediction_type), Value(),
                     Value());
      return trial.status();
    };
    const absl::Status status = computed_of(label_type);
    if (status.ok()) return;
    // Other losses expect class indices.
    const bool wants_equal_shapes =
        computed_of({label_type.dtype, prediction_type.shape}).ok();
    const std::string hint =
        wants_equal_shapes
            ? LabelHint(label_type.shape, prediction_type.shape)
            : ClassLabelHint(label_type.shape, prediction_type.shape);
    builder_.ReportError(absl::InvalidArgumentError(absl::StrCat(
        "the labels, ", labels.type().ToString(),
        ", do not fit the predictions of \"", parts_.outputs[output].name,
        "\", ", predictions.type().ToString(), ", in the loss ", loss.name(),
        ": ", hint.empty() ? status.message() : hint)));
  }

  void AddLosses() {
    losses_.resize(parts_.outputs.size());
    for (size_t i = 0; i < parts_.outputs.size(); ++i) {
      const Loss& loss = parts_.outputs[i].loss;
      if (!loss) continue;
      CheckLabels(i);
      const GraphBuilder::NameScope scope(&builder_, LossName(i));
      Loss::Counted& counted = losses_[i].emplace(loss.WithCount(
          element_.labels(i), predictions_[i], weights_[i], masks_[i]));
      // For training, losses that are not reduced are replaced by their mean.
      if (counted.loss.ok() && counted.loss.shape().rank() > 0) {
        counted.loss = Mean(counted.loss);
      }
    }
  }

  // Returns true if the losses are means. Reports an error if only some are.
  bool AreMeans() {
    int mean_count = 0;
    int sum_count = 0;
    for (const std::optional<Loss::Counted>& counted : losses_) {
      if (!counted.has_value() || !counted->loss.ok()) continue;
      ++(IsMean(*counted) ? mean_count : sum_count);
    }
    if (mean_count > 0 && sum_count > 0) {
      builder_.ReportError(absl::InvalidArgumentError(
          "the losses of some outputs are means over the batch and those of "
          "others are sums; give all the same reduction"));
    }
    return sum_count == 0;
  }

  Value Penalties(bool is_mean, Value example_count) {
    const GraphBuilder::NameScope scope(&builder_, "regularization");
    std::vector<Value> penalties = added_losses_;
    for (const Weight& weight : TrainableOf(parts_.layer->weights())) {
      if (!weight.regularizer()) continue;
      penalties.push_back(
          weight.regularizer()(ReadVariable(builder_, weight.handle())));
    }
    Value sum;
    for (Value penalty : penalties) {
      penalty = Cast(penalty, DType::kFloat32);
      sum = sum.builder() == nullptr ? penalty : sum + penalty;
    }
    if (sum.builder() == nullptr || is_mean) return sum;
    // Sums of losses are summed over the replicas, so each replica adds a
    // fraction of the penalties in proportion to its examples.
    const Value all = AllReduce(example_count, "sum");
    return sum * (example_count / Maximum(all, 1.0));
  }

  // Returns the indices of the outputs that have a loss.
  std::vector<size_t> TrainedOutputs() const {
    std::vector<size_t> outputs;
    for (size_t i = 0; i < losses_.size(); ++i) {
      if (losses_[i].has_value()) outputs.push_back(i);
    }
    return outputs;
  }

  // Scales losses that are means over something other than examples, so that
  // they can be weighted by examples across replicas. If this replica has n of
  // N examples and its mean is over c of C items, the factor is (c / n) / (C /
  // N).
  void BalanceMeans(const std::vector<size_t>& outputs, Value example_count,
                    std::vector<Value>* losses) {
    std::vector<size_t> uneven;
    std::vector<Value> counts = {example_count};
    for (size_t k = 0; k < outputs.size(); ++k) {
      const Loss::Counted& counted = *losses_[outputs[k]];
      if (!counted.loss.ok() || counted.counts_all) continue;
      uneven.push_back(k);
      counts.push_back(counted.example_count);
    }
    if (uneven.empty()) return;
    const std::vector<Value> all =
        Unstack(AllReduce(Stack(counts, 0), "sum"),
                static_cast<int64_t>(counts.size()), 0);
    for (size_t j = 1; j < counts.size(); ++j) {
      Value& loss = (*losses)[uneven[j - 1]];
      // The factor is exactly 1 if one replica has all examples.
      const Value factor =
          counts[j] * all[0] / Maximum(example_count * all[j], 1.0);
      loss = loss * Cast(factor, loss.dtype());
    }
  }

  Value MeanOver(const std::vector<size_t>& outputs, Value example_count) {
    if (outputs.size() > 1) return example_count;
    const Loss::Counted& counted = *losses_[outputs[0]];
    if (counted.counts_all || !counted.loss.ok()) return counted.example_count;
    return counted.example_count + example_count * kIgnoredExampleWeight;
  }

  void AddTotal(Value example_count) {
    const GraphBuilder::NameScope scope(&builder_, "loss");
    const bool is_mean = AreMeans();
    const std::vector<size_t> outputs = TrainedOutputs();
    std::vector<Value> losses;
    for (const size_t output : outputs) losses.push_back(losses_[output]->loss);
    if (is_mean && outputs.size() > 1) {
      BalanceMeans(outputs, example_count, &losses);
    }
    Value total;
    for (size_t k = 0; k < outputs.size(); ++k) {
      Value loss = losses[k];
      const double weight = parts_.outputs[outputs[k]].loss_weight;
      if (weight != 1) loss = loss * weight;
      total =
          total.builder() == nullptr ? loss : total + Cast(loss, total.dtype());
    }
    const Value penalties = Penalties(is_mean, example_count);
    if (penalties.builder() != nullptr && total.ok()) {
      total = total + Cast(penalties, total.dtype());
    }
    forward_.loss = total;
    if (is_mean) forward_.mean_over = MeanOver(outputs, example_count);
    AddLossResult("loss", total, forward_.mean_over, example_count);
  }

  void AddLossesOfOutputs(Value example_count) {
    for (size_t i = 0; i < losses_.size(); ++i) {
      if (!losses_[i].has_value()) continue;
      const GraphBuilder::NameScope scope(&builder_, LossName(i));
      AddLossResult(LossName(i), losses_[i]->loss, losses_[i]->example_count,
                    example_count);
    }
  }

  void AddLossResult(const std::string& name, Value loss, Value mean_over,
                     Value example_count) {
    builder_.AddResult(LossResult(loss, mean_over, example_count));
    forward_.results.losses.push_back(name);
  }

  void AddMetrics(size_t output) {
    const OutputParts& parts = parts_.outputs[output];
    for (const Metric& metric : parts.metrics) {
      AddMetric(output, metric, MetricName(output, metric, false), Value());
    }
    for (const Metric& metric : parts.weighted_metrics) {
      AddMetric(output, metric, MetricName(output, metric, true),
                weights_[output]);
    }
  }

  // Returns the metric's name in Keras: prefixed with the output's name if
  // there are several outputs, and with "weighted_" or a number if the name is
  // already used.
  std::string MetricName(size_t output, const Metric& metric,
                         bool is_weighted) {
    const std::string prefix =
        parts_.outputs.size() == 1
            ? ""
            : absl::StrCat(parts_.outputs[output].name, "_");
    std::string name = absl::StrCat(prefix, metric.name());
    int earlier_count = metric_name_counts_[name]++;
    if (earlier_count > 0 && is_weighted) {
      name = absl::StrCat(prefix, "weighted_", metric.name());
      earlier_count = metric_name_counts_[name]++;
    }
    return earlier_count == 0 ? name : absl::StrCat(name, "_", earlier_count);
  }

  void AddMetric(size_t output, const Metric& metric, const std::string& name,
                 Value weights) {
    const GraphBuilder::NameScope scope(&builder_, name);
    builder_.AddResult(metric.StatisticsOf(element_.labels(output),
                                           predictions_[output], weights,
                                           masks_[output]));
    forward_.results.metrics.push_back(metric.Named(name));
  }

  GraphBuilder& builder_;
  const StepParts& parts_;
  const StepElement& element_;
  std::vector<Value> predictions_;
  std::vector<Value> added_losses_;  // Added by layers.
  // By output. Values without a graph if there are none.
  std::vector<Value> masks_;
  std::vector<Value> weights_;
  std::vector<std::optional<Loss::Counted>> losses_;
  std::map<std::string, int> metric_name_counts_;
  StepForward forward_;
};

}  // namespace

size_t InputCount(const Layer& layer) {
  return static_cast<size_t>(std::max(1, layer.input_count()));
}

absl::StatusOr<ElementLayout> LayoutOf(const Layer& layer,
                                       absl::Span<const TensorType> types) {
  ElementLayout layout{
      .input_count = InputCount(layer),
      .output_count = static_cast<size_t>(layer.output_count())};
  const size_t labelled_count = layout.input_count + layout.output_count;
  if (types.size() > labelled_count) {
    layout.weight_count = types.size() - labelled_count;
  }
  const bool has_weights_of_outputs =
      layout.weight_count <= 1 || layout.weight_count == layout.output_count;
  const bool is_batched =
      std::all_of(types.begin(), types.end(),
                  [](const TensorType& type) { return type.shape.rank() > 0; });
  if (types.size() >= labelled_count && has_weights_of_outputs && is_batched) {
    return layout;
  }
  std::string expected = "{x, y} or {x, y, sample_weight}";
  if (labelled_count > 2) {
    expected = absl::StrCat("of ", layout.input_count, " inputs and ",
                            layout.output_count,
                            " labels, and then no sample weights, one, or one "
                            "for each output");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("expected batches ", expected, ", got elements {",
                   absl::StrJoin(types, ", ",
                                 [](std::string* out, const TensorType& type) {
                                   out->append(type.ToString());
                                 }),
                   "}", is_batched ? "" : "; batch the dataset with Batch()"));
}

StepForward TraceStepForward(GraphBuilder& builder, const StepParts& parts,
                             const ElementLayout& layout,
                             absl::Span<const Value> element, bool training) {
  const StepElement pieces(layout, element);
  return Forward(builder, parts, pieces, training).Trace();
}

StepResults TraceCustomStep(GraphBuilder& builder, const StepParts& parts,
                            absl::Span<const Value> element, bool training) {
  const Value example_count = CountAlong(element.front(), {0});
  builder.AddResult(
      LossResult(ZerosLike(example_count), Value(), example_count));
  StepResults results{.losses = {""}};
  const StepTrace trace{.builder = &builder,
                        .layer = parts.layer,
                        .element = element,
                        .context = {.training = training, .seed = parts.seed},
                        .clipping_of = parts.clipping_of,
                        .loss_scale = parts.loss_scale};
  for (const StepMetric& metric : parts.custom_step(trace)) {
    builder.AddResult(metric.statistics);
    results.metrics.push_back(Metric(metric.name, nullptr, metric.result));
  }
  return results;
}

}  // namespace muster
