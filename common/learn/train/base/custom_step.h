#ifndef COMMON_LEARN_TRAIN_BASE_CUSTOM_STEP_H_
#define COMMON_LEARN_TRAIN_BASE_CUSTOM_STEP_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/variable_ops.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/metric.h"
#include "common/learn/nn/minimize.h"

namespace muster {

// A number for the logs that a custom step computes.
struct StepMetric {
  std::string name;
  // float32 of a fixed shape, added up over batches, replicas and workers...
  Value statistics;
  // ...and what the log's value is made of. Without another: a mean, of what
  // MeanStatistics() gives.
  Metric::Result result = MeanResult;
};

// The arguments for tracing a custom step.
struct StepTrace {
  GraphBuilder* builder;  // Borrowed.
  LayerPtr layer;
  // The components of an element of the dataset; the first axis is the batch's.
  // Components with names come in the order of InOrderOfModel().
  absl::Span<const Value> element;
  CallContext context;
  ClippingOfWeight clipping_of;  // As the optimizer of the weight has it.
  // The variable with the scale of the loss, if the optimizer has one.
  std::optional<VariableHandle> loss_scale = std::nullopt;

  // Calls the model.
  Value Call(Value x) const { return (*layer)(x, context); }
  // Applies the gradient of `loss` to the trainable weights, each through its
  // optimizer. Where replicas train in sync gradients are summed, unless
  // SetLossDenominator() says before that the loss is a mean, and over how
  // much. Scales the loss if the optimizer does.
  void Minimize(Value loss) const;
};

// Traces a step, in place of what Fit() (or Evaluate()) does with losses and
// metrics, and says what goes to the logs:
//
//   options.train_step = [](const StepTrace& step) -> std::vector<StepMetric> {
//     const Value x = step.element[0];
//     const Value errors = Square(step.Call(x) - step.element[1]);
//     SetLossDenominator(CountAlong(x, {0}));
//     step.Minimize(Mean(errors));
//     return {{"loss", MeanStatistics(errors)}};
//   };
//
// Mistakes are reported to the builder and come out of Fit().
//
// Equivalent to: overriding keras.Model.train_step() and test_step().
using CustomStep =
    std::function<std::vector<StepMetric>(const StepTrace& step)>;

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_CUSTOM_STEP_H_
