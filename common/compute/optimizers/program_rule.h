#ifndef COMMON_COMPUTE_OPTIMIZERS_PROGRAM_RULE_H_
#define COMMON_COMPUTE_OPTIMIZERS_PROGRAM_RULE_H_

#include "common/compute/optimizers/optimizer_kind.h"

namespace muster {

// The kind of optimizers that Muster does not have: their updates are programs
// that JAX has exported (proto::Optimizer::Program). Not in kOptimizerKinds,
// because Keras has no such class.
//
// The inputs of a program are the gradient, the variable, the slots, the number
// of updates before this one, int32[], and the learning rate, float32[]. The
// outputs are the new variable and slots. All arrays are float32.
//
//   float32[?]  the program computes each element separately. It has variants
//               for some numbers of elements, and updates variables of any
//               shape, parts of variables, and rows.
//   otherwise   the program updates whole variables of one shape.
//
// The plugin of the process runs the programs (CompiledProgram). Its code may
// differ in rounding between processors. A program that fails after
// UpdateRule::Prepare() has run it ends the process, because an update cannot
// be undone.
//
// make_rule:
//   kInvalidArgument  a program cannot be decoded, or its types are others; the
//                     number of slots is too large; or the fields of the
//                     message contradict each other
extern const OptimizerKind kProgramKind;

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_PROGRAM_RULE_H_
