#ifndef COMMON_COMPUTE_VARIABLES_CLIPPING_SESSION_H_
#define COMMON_COMPUTE_VARIABLES_CLIPPING_SESSION_H_

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/compute/functions/gradient_clipping.h"
#include "common/compute/variables/variable_session.h"

namespace muster {

// Returns how the gradients of each use are clipped. Uses with a global norm
// carry the greatest limit in their norm_group; the others have norm_group 0.
std::vector<GradientClipping> ClippingOf(absl::Span<const VariableUse> uses);

// Returns a session that clips gradients before `inner` receives them, as the
// updates in `uses` specify. Returns `inner` itself if no update specifies
// clipping.
//
// Repeated rows of a sparse gradient are summed first, so that the norm does
// not depend on how the gradient is written. With a global norm, the session
// passes the step's gradients on in Commit(), each norm_group scaled by its own
// norm. Reading a variable after its gradient in the same step then returns
//   kUnimplemented  names the variable
// A norm that is not finite makes the gradients NaN, as Keras does. If `inner`
// accumulates gradients, their mean is clipped when it is applied.
std::unique_ptr<VariableSession> WithClipping(
    std::unique_ptr<VariableSession> inner, absl::Span<const VariableUse> uses);

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_CLIPPING_SESSION_H_
