#ifndef COMMON_LEARN_TRAIN_BASE_STEP_GRAPHS_H_
#define COMMON_LEARN_TRAIN_BASE_STEP_GRAPHS_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/train/base/step_parts.h"
#include "common/learn/train/base/step_results.h"

namespace muster {

// A graph and the description of its results.
struct TracedStep {
  Graph graph;
  StepResults results;
};

// The parameters of each graph are the batched components of an element, in the
// layout of LayoutOf() or as a custom step requires. Their batch extent is
// unknown, so that replicas may run parts of a batch. Tracing builds layers
// that are not built yet.
//   kInvalidArgument  the elements do not fit the layers, the losses or the
//                     metrics; the message names the node

// Traces a training step. It applies one gradient to each trainable weight on
// which a loss depends, weighted by the count over which the loss is a mean.
absl::StatusOr<TracedStep> TraceTrainStep(
    const StepParts& parts, absl::Span<const TensorType> element_types);

// Traces an evaluation step. It has the same results and changes no variable.
absl::StatusOr<TracedStep> TraceEvaluateStep(
    const StepParts& parts, absl::Span<const TensorType> element_types);

// Traces a prediction step. The first components are the layer's inputs; others
// are ignored. The results are the predictions, one for each output.
absl::StatusOr<Graph> TracePredictStep(
    const LayerPtr& layer, absl::Span<const TensorType> element_types);

// Traces the graph from inputs to predictions, which builds the layers.
absl::StatusOr<Graph> TraceForward(const LayerPtr& layer,
                                   absl::Span<const TensorType> inputs);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_STEP_GRAPHS_H_
