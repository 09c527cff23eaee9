#ifndef COMMON_COMPUTE_OPS_PROGRAM_OPS_H_
#define COMMON_COMPUTE_OPS_PROGRAM_OPS_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/programs/program.h"

namespace muster {

// Computes `program` on `inputs`, which have its types. Returns its outputs, or
// as many poisoned values after an error. The gradient is that which the
// program was exported with.
//
// A step compiles and runs the program with a PJRT plugin
// (common/compute/kernels/programs). The program is part of the graph, so each
// process that runs the graph has it.
std::vector<Value> RunProgram(absl::Span<const Value> inputs,
                              const Program& program);

// Returns the seed of a program that draws random numbers: int32[2], which
// differs between steps, between `data`, and between parts of a global batch.
// `batch` is one part, [batch, ...], of any dtype. A retry of the step gets the
// same seed.
Value ProgramSeed(Value batch, int64_t data);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_PROGRAM_OPS_H_
