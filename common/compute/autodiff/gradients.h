#ifndef COMMON_COMPUTE_AUTODIFF_GRADIENTS_H_
#define COMMON_COMPUTE_AUTODIFF_GRADIENTS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"

// Reverse-mode differentiation of what has been traced so far: the gradients
// are nodes added to the same graph, so they can be differentiated again.
//
// No gradient flows through integers, through ops without a gradient rule, or
// from the output of an op to an update of a variable and back to its reads: a
// read after an update starts anew.
namespace muster {

// How a target changes with a source.
struct Gradient {
  // At most one is there; neither when the target does not depend on the
  // source.
  Value dense;
  std::optional<IndexedSlices> sparse;

  bool exists() const { return dense.ok() || sparse.has_value(); }
};

// One gradient for each source. A target that is not a scalar counts as the sum
// of its elements. A source that is used by lookups along axis 0 alone has a
// sparse gradient.
//
// Reported to the builder: kInvalidArgument when the target is not floating or
// a source belongs to another graph.
std::vector<Gradient> Gradients(Value target, absl::Span<const Value> sources);

// One gradient for each variable, summed over all the reads and lookups of it.
// Sparse when it is only looked up in, by GatherVariable or by Gather of a
// read.
//
// Reported to the builder: as Gradients().
std::vector<Gradient> VariableGradients(
    Value target, absl::Span<const std::string> variables);

// The gradient as one tensor, of the shape of `source`; zeros when there is
// none.
Value DenseGradient(const Gradient& gradient, Value source);

}  // namespace muster

#endif  // COMMON_COMPUTE_AUTODIFF_GRADIENTS_H_
