#ifndef COMMON_COMPUTE_VARIABLES_VARIABLE_NAME_H_
#define COMMON_COMPUTE_VARIABLES_VARIABLE_NAME_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

// Checks the name of a variable, or of a layer whose name becomes part of its
// variables' names. Checkpoints split names at their slashes, so no part may be
// empty: "a//b", "/a" and "a/" are invalid. An empty name is valid and means
// that the name is not set yet.
//   kInvalidArgument  a part is empty; quotes the name
absl::Status CheckVariableName(absl::string_view name);

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_VARIABLE_NAME_H_
