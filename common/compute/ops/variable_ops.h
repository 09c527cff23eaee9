#ifndef COMMON_COMPUTE_OPS_VARIABLE_OPS_H_
#define COMMON_COMPUTE_OPS_VARIABLE_OPS_H_

#include <string>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/gradient_clipping.h"
#include "common/core/tensor/tensor.h"

// What a graph does to variables, which it knows by name and type and which
// live where the strategy wants them. Reads and updates of one variable happen
// in the order in which they were traced.
namespace muster {

// A variable as a graph knows it.
struct VariableHandle {
  std::string name;
  TensorType type;  // Fully known.
};

Value ReadVariable(GraphBuilder& builder, const VariableHandle& variable);
// Rows `indices` of a variable: moves only those, wherever it lives. The
// gradient is sparse. An index out of range fails the step.
Value GatherVariable(const VariableHandle& variable, Value indices);

void AssignVariable(const VariableHandle& variable, Value value);
void AssignAddVariable(const VariableHandle& variable, Value value);
void AssignSubVariable(const VariableHandle& variable, Value value);

// `indices` is int32 or int64 [n], `rows` is [n, row...]. Indices that repeat
// are applied one after another.
void ScatterUpdateVariable(const VariableHandle& variable, Value indices,
                           Value rows);
void ScatterAddVariable(const VariableHandle& variable, Value indices,
                        Value rows);
void ScatterSubVariable(const VariableHandle& variable, Value indices,
                        Value rows);

// Says that the gradients that this step applies are means over `weight`
// examples, a float32 scalar of at least 0: where replicas train in sync, the
// variables take the mean over the examples of all. A step that does not say so
// has its gradients summed over the replicas. A mistake when the step has
// applied a gradient already, or says it twice.
void SetLossDenominator(Value weight);

// One step of the optimizer that the variable's store has.
void ApplyGradient(const VariableHandle& variable, Value gradient,
                   const GradientClipping& clipping = {});
// Of the rows `indices` only. Gradients of rows that repeat are summed before
// the rule sees them. Rows that are absent keep their value and their slots,
// where Keras 3 decays the slots and moves the weights of all rows under a
// stateful optimizer: see UpdateRule::ApplyRows().
void ApplySparseGradient(const VariableHandle& variable, Value values,
                         Value indices, const GradientClipping& clipping = {});

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_VARIABLE_OPS_H_
