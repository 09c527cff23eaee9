#include "common/learn/train/base/step_graphs.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/minimize.h"
#include "common/learn/nn/weight.h"
#include "common/learn/train/base/step_forward.h"
#include "common/learn/train/base/step_parts.h"
#include "common/learn/train/base/step_results.h"

namespace muster {
namespace {

// "x", "y" or "sample_weight", with a number if there are several of the kind.
std::string ComponentName(size_t index, const ElementLayout& layout) {
  const auto name = [](absl::string_view what, size_t i, size_t count) {
    return count == 1 ? std::string(what) : absl::StrCat(what, "_", i);
  };
  if (index < layout.input_count) return name("x", index, layout.input_count);
  index -= layout.input_count;
  if (index < layout.output_count) return name("y", index, layout.output_count);
  index -= layout.output_count;
  return name("sample_weight", index, std::max<size_t>(1, layout.weight_count));
}

// Adds the parameters of a step, one for each component of an element.
std::vector<Value> AddParameters(GraphBuilder& builder,
                                 const ElementLayout& layout,
                                 absl::Span<const TensorType> types) {
  std::vector<Value> parameters;
  for (size_t i = 0; i < types.size(); ++i) {
    TensorType type = types[i];
    if (type.shape.rank() > 0) type.shape.set_dim(0, Shape::kUnknown);
    parameters.push_back(builder.Parameter(ComponentName(i, layout), type));
  }
  return parameters;
}

// Returns the layout of elements of which only the inputs are used, or whose
// other components have no known meaning.
ElementLayout LayoutOfInputs(const Layer& layer, size_t component_count) {
  ElementLayout layout{.input_count = InputCount(layer)};
  layout.weight_count = component_count;
  return layout;
}

// Adds the result that StepResults::has_loss_scale declares, if there is a
// scale.
void AddLossScale(GraphBuilder& builder, const StepParts& parts,
                  StepResults* results) {
  if (!parts.loss_scale.has_value()) return;
  const GraphBuilder::NameScope scope(&builder, "loss_scale");
  const Value scale = ReadVariable(builder, *parts.loss_scale);
  builder.AddResult(Stack({scale, ScalarLike(scale, 1)}, 0));
  results->has_loss_scale = true;
}

absl::StatusOr<TracedStep> TraceCustom(absl::string_view name,
                                       const StepParts& parts,
                                       absl::Span<const TensorType> types,
                                       bool training) {
  if (types.empty() || types.front().shape.rank() == 0) {
    return absl::InvalidArgumentError(
        "expected batches; batch the dataset with Batch()");
  }
  GraphBuilder builder(&BuiltinOps(), name);
  const std::vector<Value> element =
      AddParameters(builder, LayoutOfInputs(*parts.layer, types.size()), types);
  TracedStep step;
  step.results = TraceCustomStep(builder, parts, element, training);
  AddLossScale(builder, parts, &step.results);
  ASSIGN_OR_RETURN(step.graph, std::move(builder).Build());
  return step;
}

absl::StatusOr<TracedStep> TraceStep(absl::string_view name,
                                     const StepParts& parts,
                                     absl::Span<const TensorType> types,
                                     bool training) {
  if (parts.custom_step != nullptr) {
    return TraceCustom(name, parts, types, training);
  }
  ASSIGN_OR_RETURN(const ElementLayout layout, LayoutOf(*parts.layer, types));
  GraphBuilder builder(&BuiltinOps(), name);
  const std::vector<Value> element = AddParameters(builder, layout, types);
  const StepForward forward =
      TraceStepForward(builder, parts, layout, element, training);
  if (training && forward.loss.ok()) {
    const GraphBuilder::NameScope scope(&builder, "gradients");
    // Sums are added up over replicas without a denominator.
    if (forward.is_mean()) SetLossDenominator(forward.mean_over);
    Minimize(forward.loss, TrainableOf(parts.layer->weights()),
             parts.clipping_of, parts.loss_scale);
  }
  TracedStep step;
  step.results = forward.results;
  AddLossScale(builder, parts, &step.results);
  ASSIGN_OR_RETURN(step.graph, std::move(builder).Build());
  return step;
}

}  // namespace

absl::StatusOr<TracedStep> TraceTrainStep(
    const StepParts& parts, absl::Span<const TensorType> element_types) {
  return TraceStep("train_step", parts, element_types, /*training=*/true);
}

absl::StatusOr<TracedStep> TraceEvaluateStep(
    const StepParts& parts, absl::Span<const TensorType> element_types) {
  return TraceStep("evaluate_step", parts, element_types, /*training=*/false);
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
  const std::vector<Value> element = AddParameters(
      builder, LayoutOfInputs(*layer, element_types.size()), element_types);
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
  const std::vector<Value> values = AddParameters(
      builder, {.input_count = std::max<size_t>(1, inputs.size())}, inputs);
  for (const Value& prediction : layer->CallAll(values, kInference)) {
    builder.AddResult(prediction);
  }
  return std::move(builder).Build();
}

}  // namespace muster
