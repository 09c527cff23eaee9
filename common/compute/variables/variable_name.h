#ifndef COMMON_COMPUTE_VARIABLES_VARIABLE_NAME_H_
#define COMMON_COMPUTE_VARIABLES_VARIABLE_NAME_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

// Checks the name of a variable, or of a layer, which becomes a part of those
// of its variables. Checkpoints take names apart at their slashes, so that no
// part may be empty: "a//b", "/a" and "a/" cannot be saved. An empty name is
// one that is still to be given.
//   kInvalidArgument  a part is empty; quotes the name
absl::Status CheckVariableName(absl::string_view name);

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_VARIABLE_NAME_H_
