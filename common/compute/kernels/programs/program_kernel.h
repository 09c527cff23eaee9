#ifndef COMMON_COMPUTE_KERNELS_PROGRAMS_PROGRAM_KERNEL_H_
#define COMMON_COMPUTE_KERNELS_PROGRAMS_PROGRAM_KERNEL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/programs/program.h"
#include "common/core/tensor/tensor.h"

namespace muster::internal {

// Registers the kernel of the op "Program" on the host. It reads the inputs in
// place and copies the outputs. Unlike other kernels, it allocates memory in
// each run: the buffers of PJRT. Its factory compiles the program, or takes the
// executable of another kernel of this process.
//
// Errors of the factory are those of CompileProgram(). Run() returns the errors
// of the plugin, and kDeadlineExceeded if the program runs for an hour.
void RegisterProgramKernels(KernelRegistry* registry);

// Returns the kernel of a program, or of its gradient, for inputs of these
// fully known types.
//   kInvalidArgument  the program was not exported for these types
//   other codes       as CompileProgram()
absl::StatusOr<std::unique_ptr<Kernel>> MakeProgramKernel(
    const Program& program, absl::Span<const TensorType> inputs,
    bool is_gradient, int thread_count);

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_PROGRAMS_PROGRAM_KERNEL_H_
