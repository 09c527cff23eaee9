#ifndef COMMON_COMPUTE_VARIABLES_CLIPPING_SESSION_H_
#define COMMON_COMPUTE_VARIABLES_CLIPPING_SESSION_H_

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/compute/optimizers/gradient_clipping.h"
#include "common/compute/variables/variable_session.h"

namespace muster {

// Returns how the gradients of each use are clipped. Those with a global norm
// have the greatest limit of their norm_group; the others have norm_group 0.
std::vector<GradientClipping> ClippingOf(absl::Span<const VariableUse> uses);

// A session that clips gradients before `inner` sees them, as the updates of
// `uses` say; `inner` itself where they say nothing.
//
// Rows of a sparse gradient that repeat are summed first: the norm is that of
// the gradient, however it is written. With a global norm the step's gradients
// are handed on when it commits, each norm_group scaled by its own norm; to
// read a variable behind its gradient is then
//   kUnimplemented  names the variable
// A norm that is not finite makes the gradients NaN, as Keras does. Where
// `inner` accumulates gradients, their mean is clipped when it is applied.
std::unique_ptr<VariableSession> WithClipping(
    std::unique_ptr<VariableSession> inner, absl::Span<const VariableUse> uses);

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_CLIPPING_SESSION_H_
