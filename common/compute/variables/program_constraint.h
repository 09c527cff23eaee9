#ifndef COMMON_COMPUTE_VARIABLES_PROGRAM_CONSTRAINT_H_
#define COMMON_COMPUTE_VARIABLES_PROGRAM_CONSTRAINT_H_

#include <string>

#include "absl/status/status.h"
#include "common/core/tensor/shape.h"

namespace muster::internal {

// Constraints of the user's own: encoded programs (common/compute/programs)
// from a float32 variable to its projection. The plugin of the process compiles
// a program once and keeps it. Thread-safe.

//   kInvalidArgument  not such a program for a variable of `shape`
absl::Status CheckProgramConstraint(const std::string& encoded,
                                    const Shape& shape);

// Compiles a program that CheckProgramConstraint() accepts, and runs it once.
//   errors  as CompiledProgram (common/compute/programs/compiled)
absl::Status PrepareProgramConstraint(const std::string& encoded);

// Projects a variable. If the program fails, although
// PrepareProgramConstraint() has run it, the process ends: an update that has
// begun cannot be undone.
void ApplyProgramConstraint(const std::string& encoded, float* variable);

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_VARIABLES_PROGRAM_CONSTRAINT_H_
