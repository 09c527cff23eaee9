#include "common/train/step_graphs.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/graph/graph.h"
#include "common/graph/graph_builder.h"
#include "common/nn/layer.h"
#include "common/nn/loss.h"
#include "common/nn/metric.h"
#include "common/nn/minimize.h"
#include "common/nn/weight.h"
#include "common/ops/ops.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"

namespace muster {
namespace {

absl::Status CheckElementTypes(const Layer& layer,
                               absl::Span<const TensorType> types) {
  const size_t unweighted_count =
      InputCount(layer) + static_cast<size_t>(layer.output_count());
  const bool is_labelled =
      types.size() == unweighted_count || types.size() == unweighted_count + 1;
  const bool is_batched =
      std::all_of(types.begin(), types.end(),
                  [](const TensorType& type) { return type.shape.rank() > 0; });
  if (is_labelled && is_batched) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "expected batches {x, y} or {x, y, sample_weight}, got elements {",
      absl::StrJoin(types, ", ",
                    [](std::string* out, const TensorType& type) {
                      out->append(type.ToString());
                    }),
      "}", is_batched ? "" : "; batch the dataset with Batch()"));
}

bool IsMean(const Loss::Counted& counted) {
  return counted.example_count.builder() != nullptr;
}

// "x", "y", "sample_weight"; "x_0", "x_1", "y", ... of several inputs.
std::string ComponentName(size_t index, size_t input_count) {
  static constexpr absl::string_view kNames[] = {"x", "y", "sample_weight"};
  if (input_count > 1 && index < input_count) return absl::StrCat("x_", index);
  const size_t after_inputs = index + 1 - input_count;
  return after_inputs < 3 ? std::string(kNames[after_inputs])
                          : absl::StrCat("component_", index);
}

// The parameters of a step, one for each component of an element.
std::vector<Value> AddParameters(GraphBuilder& builder, size_t input_count,
                                 absl::Span<const TensorType> types) {
  std::vector<Value> parameters;
  for (size_t i = 0; i < types.size(); ++i) {
    TensorType type = types[i];
    if (type.shape.rank() > 0) type.shape.set_dim(0, Shape::kUnknown);
    parameters.push_back(
        builder.Parameter(ComponentName(i, input_count), type));
  }
  return parameters;
}

// Adds prediction, loss and statistics; returns the loss to differentiate.
Loss::Counted AddForward(GraphBuilder& builder, const StepParts& parts,
                         absl::Span<const Value> element, bool training) {
  const size_t input_count = InputCount(*parts.layer);
  const Value x = element[0];
  const Value y = element[input_count];
  const Value weight =
      element.size() > input_count + 1 ? element.back() : Value();

  const Value prediction =
      (*parts.layer)(element.subspan(0, input_count),
                     {.training = training, .seed = parts.seed});
  Loss::Counted counted;
  {
    const GraphBuilder::NameScope scope(&builder, "loss");
    counted = parts.loss.WithCount(y, prediction, weight);
    Value& loss = counted.loss;
    // Losses that are not reduced train like their mean.
    if (loss.ok() && loss.shape().rank() > 0) loss = Mean(loss);
    const Value value = Cast(loss, DType::kFloat32);
    const Value count = CountAlong(x, {0});
    const Value mean_over = counted.example_count;
    builder.AddResult(IsMean(counted)
                          ? Stack({value * mean_over, mean_over, count}, 0)
                          : Stack({value, ZerosLike(count), count}, 0));
  }
  for (const Metric& metric : parts.metrics) {
    const GraphBuilder::NameScope scope(&builder, metric.name());
    builder.AddResult(metric.StatisticsOf(y, prediction));
  }
  for (const Metric& metric : parts.weighted_metrics) {
    const GraphBuilder::NameScope scope(&builder, metric.name());
    builder.AddResult(metric.StatisticsOf(y, prediction, weight));
  }
  return counted;
}

void AddUpdates(GraphBuilder& builder, const StepParts& parts,
                const Loss::Counted& counted) {
  if (!counted.loss.ok()) return;
  std::vector<Weight> trainable;
  for (const Weight& weight : parts.layer->weights()) {
    if (weight.trainable()) trainable.push_back(weight);
  }
  const GraphBuilder::NameScope scope(&builder, "gradients");
  // Sums add up over replicas as they are.
  if (IsMean(counted)) WeightGradients(counted.example_count);
  Minimize(counted.loss, trainable);
}

}  // namespace

absl::StatusOr<Graph> TraceTrainStep(
    const StepParts& parts, absl::Span<const TensorType> element_types) {
  RETURN_IF_ERROR(CheckElementTypes(*parts.layer, element_types));
  GraphBuilder builder(&BuiltinOps(), "train_step");
  const std::vector<Value> element =
      AddParameters(builder, InputCount(*parts.layer), element_types);
  const Loss::Counted loss =
      AddForward(builder, parts, element, /*training=*/true);
  AddUpdates(builder, parts, loss);
  return std::move(builder).Build();
}

absl::StatusOr<Graph> TraceEvaluateStep(
    const StepParts& parts, absl::Span<const TensorType> element_types) {
  RETURN_IF_ERROR(CheckElementTypes(*parts.layer, element_types));
  GraphBuilder builder(&BuiltinOps(), "evaluate_step");
  const std::vector<Value> element =
      AddParameters(builder, InputCount(*parts.layer), element_types);
  AddForward(builder, parts, element, /*training=*/false);
  return std::move(builder).Build();
}

size_t InputCount(const Layer& layer) {
  return static_cast<size_t>(std::max(1, layer.input_count()));
}

absl::StatusOr<Graph> TracePredictStep(
    const LayerPtr& layer, absl::Span<const TensorType> element_types) {
  const size_t input_count = InputCount(*layer);
  if (element_types.size() < input_count) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model has ", input_count, " inputs, the data has ",
                     element_types.size(), " components"));
  }
  GraphBuilder builder(&BuiltinOps(), "predict_step");
  const std::vector<Value> element =
      AddParameters(builder, input_count, element_types);
  const absl::Span<const Value> inputs =
      absl::MakeConstSpan(element).subspan(0, input_count);
  for (const Value& prediction : layer->CallAll(inputs, kInference)) {
    builder.AddResult(prediction);
  }
  return std::move(builder).Build();
}

absl::StatusOr<Graph> TraceForward(const LayerPtr& layer,
                                   absl::Span<const TensorType> inputs) {
  GraphBuilder builder(&BuiltinOps(), "forward");
  const std::vector<Value> values =
      AddParameters(builder, inputs.size(), inputs);
  for (const Value& prediction : layer->CallAll(values, kInference)) {
    builder.AddResult(prediction);
  }
  return std::move(builder).Build();
}

}  // namespace muster
