#ifndef COMMON_LEARN_TRAIN_JOB_STEP_MEMORY_H_
#define COMMON_LEARN_TRAIN_JOB_STEP_MEMORY_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/optimizers/optimizer.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/weight.h"
#include "common/learn/train/base/layer_optimizers.h"

namespace muster {

// The memory of a model's variables.
struct VariableMemory {
  int64_t weight_bytes = 0;
  int64_t trainable_bytes = 0;  // As much as all gradients of a step.
  int64_t slot_bytes = 0;       // Of the optimizers.
};

// All weights have their shapes.
//   kInvalidArgument  as UpdateRule::Create()
absl::StatusOr<VariableMemory> MeasureVariables(
    absl::Span<const Weight> weights, const ModelOptimizers& optimizers);

// Returns the memory of the values that a step of `graph` holds at a time, at
// most: of its arguments, of what it computes, and not of variables. Without
// the rewrites of an Executable, which need less. The arguments have types
// `parameters`, all extents known.
//   kInvalidArgument  an operation cannot have these arguments; names its node
absl::StatusOr<int64_t> MeasureStep(const Graph& graph,
                                    const std::vector<TensorType>& parameters);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_STEP_MEMORY_H_
