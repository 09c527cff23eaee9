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

// A value that a custom step computes for the logs.
struct StepMetric {
  std::string name;
  // float32 of a fixed shape. Summed over batches, replicas and workers.
  Value statistics;
  // Computes the value in the logs from the sum. By default a mean, for
  // statistics of MeanStatistics().
  Metric::Result result = MeanResult;
};

// The arguments for tracing a custom step.
struct StepTrace {
  GraphBuilder* builder;  // Borrowed.
  LayerPtr layer;
  // The components of an element of the dataset; the first axis is the batch's.
  // Named components are in the order of InOrderOfModel().
  absl::Span<const Value> element;
  CallContext context;
  ClippingOfWeight clipping_of;  // The clipping of each weight's optimizer.
  // The variable with the scale of the loss, if the optimizer has one.
  std::optional<VariableHandle> loss_scale = std::nullopt;

  // Calls the model.
  Value Call(Value x) const { return (*layer)(x, context); }
  // Applies the gradient of `loss` to the trainable weights, each through its
  // optimizer. If replicas train in sync, gradients are summed, unless
  // SetLossDenominator() was called before to declare that the loss is a mean,
  // and over what count. Scales the loss if the optimizer does.
  void Minimize(Value loss) const;
};

// Traces a step that replaces the losses and metrics of Fit() or Evaluate().
// Returns the values for the logs:
//
//   options.train_step = [](const StepTrace& step) -> std::vector<StepMetric> {
//     const Value x = step.element[0];
//     const Value errors = Square(step.Call(x) - step.element[1]);
//     SetLossDenominator(CountAlong(x, {0}));
//     step.Minimize(Mean(errors));
//     return {{"loss", MeanStatistics(errors)}};
//   };
//
// Errors are reported to the builder, and Fit() returns them.
//
// Equivalent to: overriding keras.Model.train_step() and test_step().
using CustomStep =
    std::function<std::vector<StepMetric>(const StepTrace& step)>;

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_CUSTOM_STEP_H_
