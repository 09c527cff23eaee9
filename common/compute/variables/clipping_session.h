#ifndef COMMON_COMPUTE_VARIABLES_CLIPPING_SESSION_H_
#define COMMON_COMPUTE_VARIABLES_CLIPPING_SESSION_H_

#include <memory>

#include "absl/types/span.h"
#include "common/compute/variables/variable_session.h"

namespace muster {

// A session that clips gradients before `inner` sees them, as the updates of
// `uses` say; `inner` itself where they say nothing.
//
// Rows of a sparse gradient that repeat are summed first: the norm is that of
// the gradient, however it is written. With a global norm the step's gradients
// are handed on when it commits; to read a variable behind its gradient is then
//   kUnimplemented  names the variable
// A norm that is not finite makes the gradients NaN, as Keras does. Where
// `inner` accumulates gradients, their mean is clipped when it is applied.
std::unique_ptr<VariableSession> WithClipping(
    std::unique_ptr<VariableSession> inner, absl::Span<const VariableUse> uses);

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_CLIPPING_SESSION_H_
