#ifndef COMMON_COMPUTE_KERNELS_PROGRAMS_EVALUATE_PROGRAM_H_
#define COMMON_COMPUTE_KERNELS_PROGRAMS_EVALUATE_PROGRAM_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/programs/program.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// Runs a program once, outside of a graph, on one thread. Compiles it unless
// this process uses the same module already.
//   errors  as Program::InferOutputs(), and of the kernel (program_kernel.h)
absl::StatusOr<std::vector<Tensor>> EvaluateProgram(
    const Program& program, absl::Span<const Tensor> inputs);

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_PROGRAMS_EVALUATE_PROGRAM_H_
