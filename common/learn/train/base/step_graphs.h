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

// A graph, and what its results say.
struct TracedStep {
  Graph graph;
  StepResults results;
};

// The parameters of each graph are the components of an element, batched: as
// LayoutOf() says, or whatever a custom step takes. Their batch extent is
// unknown, so that replicas may run parts of a batch. Tracing builds the layers
// that are not built yet.
//   kInvalidArgument  the elements do not fit the layers, the losses or the
//                     metrics; the message names the node

// Applies one gradient to each trainable weight that a loss depends on,
// weighted by what the loss is a mean over.
absl::StatusOr<TracedStep> TraceTrainStep(
    const StepParts& parts, absl::Span<const TensorType> element_types);

// The same results. Changes nothing.
absl::StatusOr<TracedStep> TraceEvaluateStep(
    const StepParts& parts, absl::Span<const TensorType> element_types);

// The first components are the layer's inputs; others are ignored. Results: the
// predictions, one for each output.
absl::StatusOr<Graph> TracePredictStep(
    const LayerPtr& layer, absl::Span<const TensorType> element_types);

// Inputs -> predictions: builds the layers.
absl::StatusOr<Graph> TraceForward(const LayerPtr& layer,
                                   absl::Span<const TensorType> inputs);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_STEP_GRAPHS_H_
