#ifndef COMMON_COMPUTE_KERNELS_PROGRAMS_PROGRAM_KERNEL_H_
#define COMMON_COMPUTE_KERNELS_PROGRAMS_PROGRAM_KERNEL_H_

#include "common/compute/kernels/kernel.h"

namespace muster::internal {

// Registers the kernel of the op "Program" on the host. Unlike other kernels,
// it allocates memory in each run: the buffers of PJRT. Errors of the factory
// and of Run() are those of CompiledProgram.
void RegisterProgramKernels(KernelRegistry* registry);

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_PROGRAMS_PROGRAM_KERNEL_H_
