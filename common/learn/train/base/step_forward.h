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

// How many components of an element go into the layer: at least 1.
size_t InputCount(const Layer& layer);

// The kinds of the components of an element: inputs, labels of each output,
// then no sample weights, one for all outputs, or one for each.
struct ElementLayout {
  size_t input_count = 1;
  size_t output_count = 1;
  size_t weight_count = 0;
};

//   kInvalidArgument  elements of these types are nothing of the kind, or not
//                     batched
absl::StatusOr<ElementLayout> LayoutOf(const Layer& layer,
                                       absl::Span<const TensorType> types);

struct StepForward {
  // The scalar that training minimizes: the weighted losses of the outputs and
  // the penalties of the weights.
  Value loss;
  // The number of examples that it is a mean over, a float32 scalar; of no
  // graph where it is a sum over examples.
  Value mean_over;
  StepResults results;

  bool is_mean() const { return mean_over.builder() != nullptr; }
};

// Adds predictions, losses and statistics to the graph, and makes those the
// graph's results that `results` describes.
//
// Where the model says that positions of an output are padding (Masks), they
// lose nothing, the mean of a loss is one over the others, and metrics leave
// them out, those without sample weights too. The loss of a step still counts
// by its examples among those of other steps, as in Keras.
//
// The losses of several outputs are all means or all sums over the examples.
// Replicas that train in sync compute what one computes on their global batch:
// a mean is weighted by the positions it is over, and of several losses each
// one by its own. Where those differ, as labels are ignored or padding is left
// out, the replicas count them together while the step runs, which is one
// collective more. Sums are taken over the examples of all replicas, and
// penalties once. Of replicas that do not train in sync, as the workers of
// parameter servers, each has the means of its own batch.
StepForward TraceStepForward(GraphBuilder& builder, const StepParts& parts,
                             const ElementLayout& layout,
                             absl::Span<const Value> element, bool training);

// The same for a custom step.
StepResults TraceCustomStep(GraphBuilder& builder, const StepParts& parts,
                            absl::Span<const Value> element, bool training);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_STEP_FORWARD_H_
