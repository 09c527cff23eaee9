#ifndef COMMON_LEARN_TRAIN_BASE_STEP_PARTS_H_
#define COMMON_LEARN_TRAIN_BASE_STEP_PARTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/compute/ops/variable_ops.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/metric.h"
#include "common/learn/nn/minimize.h"
#include "common/learn/train/base/class_weights.h"
#include "common/learn/train/base/custom_step.h"

namespace muster {

// The loss and metrics of one output of a model.
struct OutputParts {
  std::string name;  // Used in logs if there are several outputs.
  Loss loss;         // An empty Loss: the output is not trained.
  double loss_weight = 1;
  std::vector<Metric> metrics;
  std::vector<Metric> weighted_metrics;
};

// The parts of a step of Fit() or Evaluate().
struct StepParts {
  LayerPtr layer;
  std::vector<OutputParts> outputs;  // One for each output of the layer.
  uint64_t seed = 0;
  // The clipping of each weight's optimizer.
  ClippingOfWeight clipping_of;
  // The variable with the scale of the loss, for training only.
  std::optional<VariableHandle> loss_scale = std::nullopt;
  // For models with one output, in training only.
  ClassWeights class_weights = {};
  // Replaces the outputs' losses and metrics. Null: none.
  CustomStep custom_step = nullptr;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_STEP_PARTS_H_
