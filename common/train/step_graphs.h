#ifndef COMMON_TRAIN_STEP_GRAPHS_H_
#define COMMON_TRAIN_STEP_GRAPHS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/graph/graph.h"
#include "common/nn/layer.h"
#include "common/nn/loss.h"
#include "common/nn/metric.h"
#include "common/tensor/tensor.h"

namespace muster {

// What a step of Fit() or Evaluate() consists of.
struct StepParts {
  LayerPtr layer;
  Loss loss;
  std::vector<Metric> metrics;
  std::vector<Metric> weighted_metrics;
  uint64_t seed = 0;
};

// The parameters of each graph are the components of an element, batched:
// {x, y[, sample_weight]}, with as many x and y as the layer has inputs and
// outputs. Their batch extent is unknown, so that
// replicas may run parts of a batch. Tracing builds the layers that are not
// built yet.
//   kInvalidArgument  the elements are no such tuples, or do not fit the layers
//                     or the loss; the message names the node

// Results, which add up over replicas: {loss times what it is a mean over, that
// (0: the loss is no mean, and stands for itself), the number of examples},
// then the statistics of each metric. Applies one gradient to each trainable
// weight, weighted by what the loss is a mean over.
absl::StatusOr<Graph> TraceTrainStep(
    const StepParts& parts, absl::Span<const TensorType> element_types);

// The same results. Changes nothing.
absl::StatusOr<Graph> TraceEvaluateStep(
    const StepParts& parts, absl::Span<const TensorType> element_types);

// How many components of an element go into the layer: at least 1.
size_t InputCount(const Layer& layer);

// The first components are the layer's inputs; others are ignored. Results: the
// predictions, one for each output.
absl::StatusOr<Graph> TracePredictStep(
    const LayerPtr& layer, absl::Span<const TensorType> element_types);

// Inputs -> predictions: builds the layers.
absl::StatusOr<Graph> TraceForward(const LayerPtr& layer,
                                   absl::Span<const TensorType> inputs);

}  // namespace muster

#endif  // COMMON_TRAIN_STEP_GRAPHS_H_
