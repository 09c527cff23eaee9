#ifndef COMMON_COMPUTE_OPS_VARIABLE_OPS_H_
#define COMMON_COMPUTE_OPS_VARIABLE_OPS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "common/compute/functions/gradient_clipping.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/tensor.h"

// Reads and updates of variables. A graph refers to variables by name and type;
// the strategy decides where they are stored. Reads and updates of one variable
// run in the order in which they were traced.
namespace muster {

// A reference to a variable.
struct VariableHandle {
  std::string name;
  TensorType type;  // Fully known.
};

Value ReadVariable(GraphBuilder& builder, const VariableHandle& variable);
// Reads rows `indices` of a variable and transfers only these rows. The
// gradient is sparse. An index out of range fails the step.
Value GatherVariable(const VariableHandle& variable, Value indices);

void AssignVariable(const VariableHandle& variable, Value value);
void AssignAddVariable(const VariableHandle& variable, Value value);
void AssignSubVariable(const VariableHandle& variable, Value value);

// `indices` is int32 or int64 [n], `rows` is [n, row...]. Updates with equal
// indices are applied one after another.
void ScatterUpdateVariable(const VariableHandle& variable, Value indices,
                           Value rows);
void ScatterAddVariable(const VariableHandle& variable, Value indices,
                        Value rows);
void ScatterSubVariable(const VariableHandle& variable, Value indices,
                        Value rows);

// Declares that the gradients applied by this step are means over `weight`
// examples, a non-negative float32 scalar. With synchronous replicas, variables
// are then updated with the mean over the examples of all replicas. Without it,
// gradients are summed over the replicas. Reports an error if the step has
// already applied a gradient or set a denominator.
//
// Call it before gradients are computed through AllReduce() or AllGather():
// those are then weighted by the examples of the replica that they come from.
void SetLossDenominator(Value weight);

// Applies the optimizer of the variable's store.
//
// With a `loss_scale`, the name of a float32 scalar variable whose optimizer is
// OptimizerOfLossScale(): all gradients of the step that name it are applied
// when the step ends, if every element is finite, and none otherwise; then the
// scale changes. The step reads the scale, multiplies its loss by it, and
// divides gradients by it before it applies them. It cannot read a variable
// after it has applied such a gradient.
void ApplyGradient(const VariableHandle& variable, Value gradient,
                   const GradientClipping& clipping = {},
                   absl::string_view loss_scale = "");
// As ApplyGradient() for the rows `indices` only. Gradients of repeated rows
// are summed before the rule is applied. Other rows keep their values and
// slots. Keras 3, by contrast, decays the slots and moves the weights of all
// rows under a stateful optimizer: see UpdateRule::ApplyRows().
void ApplySparseGradient(const VariableHandle& variable, Value values,
                         Value indices, const GradientClipping& clipping = {},
                         absl::string_view loss_scale = "");

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_VARIABLE_OPS_H_
