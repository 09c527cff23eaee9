#ifndef COMMON_LEARN_TRAIN_BASE_STEP_FORWARD_H_
#define COMMON_LEARN_TRAIN_BASE_STEP_FORWARD_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/train/base/step_parts.h"
#include "common/learn/train/base/step_results.h"

namespace muster {

// Returns the number of components of an element that are inputs of the layer:
// at least 1.
size_t InputCount(const Layer& layer);

// The kinds of the components of an element: inputs, labels of each output,
// then no sample weights, one for all outputs, or one for each.
struct ElementLayout {
  size_t input_count = 1;
  size_t output_count = 1;
  size_t weight_count = 0;
};

//   kInvalidArgument  the types do not match such a layout, or are not batched
absl::StatusOr<ElementLayout> LayoutOf(const Layer& layer,
                                       absl::Span<const TensorType> types);

struct StepForward {
  // The scalar that training minimizes: the weighted losses of the outputs and
  // the penalties of the weights.
  Value loss;
  // The number of examples over which the loss is a mean, a float32 scalar. A
  // Value without a graph if the loss is a sum over examples.
  Value mean_over;
  StepResults results;

  bool is_mean() const { return mean_over.builder() != nullptr; }
};

// Adds predictions, losses and statistics to the graph. The losses and
// statistics become the graph's results, which StepForward::results describes.
//
// If the model marks positions of an output as padding (Masks), losses and
// metrics ignore them, including metrics without sample weights. The mean of a
// loss is over the other positions. Losses of several steps are still averaged
// by their numbers of examples, as in Keras.
//
// The losses of several outputs are all means or all sums over the examples.
// Replicas that train in sync compute the same loss as one replica on the
// global batch: each mean is weighted by the number of its positions. If this
// number differs from the number of examples, because labels are ignored or
// positions are padding, and there are several losses, the replicas add the
// numbers up while the step runs, which takes one additional collective. Sums
// are over the examples of all replicas. Penalties are added once. Replicas
// that do not train in sync, such as workers of parameter servers, use the
// means of their own batches.
StepForward TraceStepForward(GraphBuilder& builder, const StepParts& parts,
                             const ElementLayout& layout,
                             absl::Span<const Value> element, bool training);

// As TraceStepForward(), for a custom step.
StepResults TraceCustomStep(GraphBuilder& builder, const StepParts& parts,
                            absl::Span<const Value> element, bool training);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_STEP_FORWARD_H_
