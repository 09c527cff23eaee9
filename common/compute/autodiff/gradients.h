#ifndef COMMON_COMPUTE_AUTODIFF_GRADIENTS_H_
#define COMMON_COMPUTE_AUTODIFF_GRADIENTS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"

// Reverse-mode differentiation of the nodes traced so far. Gradients are nodes
// added to the same graph, so they can be differentiated again.
//
// No gradient flows through integers, through ops without a gradient rule, or
// through variables: a read does not depend on earlier updates.
namespace muster {

// The gradient of a target by one source.
struct Gradient {
  // At most one is set; neither if the target does not depend on the source.
  Value dense;
  std::optional<IndexedSlices> sparse;

  bool exists() const { return dense.ok() || sparse.has_value(); }
};

// Returns one gradient for each source. A target that is not a scalar is
// treated as the sum of its elements. The gradient of a source that is used
// only by lookups along axis 0 is sparse.
//
// Reports to the builder: kInvalidArgument if the target is not floating or a
// source belongs to another graph.
//
// Equivalent to: tf.gradients.
std::vector<Gradient> Gradients(Value target, absl::Span<const Value> sources);

// Returns one gradient for each variable, summed over all its reads and
// lookups. Sparse if the variable is only used for lookups, by GatherVariable
// or by Gather of a read.
//
// Reports to the builder: as Gradients().
std::vector<Gradient> VariableGradients(
    Value target, absl::Span<const std::string> variables);

// Returns the gradient as one tensor of the shape of `source`; zeros if there
// is no gradient.
Value DenseGradient(const Gradient& gradient, Value source);

}  // namespace muster

#endif  // COMMON_COMPUTE_AUTODIFF_GRADIENTS_H_
