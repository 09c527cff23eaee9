#ifndef COMMON_COMPUTE_KERNELS_CPU_CPU_KERNELS_H_
#define COMMON_COMPUTE_KERNELS_CPU_CPU_KERNELS_H_

#include "common/compute/kernels/kernel.h"

namespace muster {

// CPU kernels for all ops: fast ones if available, otherwise the reference
// kernels. Convolutions and matrix products use oneDNN; the other fast kernels
// are loops compiled for several vector widths.
//
// Most fast kernels support float32 only. Results equal the reference within
// rounding, and are reproducible on one machine.
//
// Lives as long as the process.
const KernelRegistry& CpuKernels();

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CPU_CPU_KERNELS_H_
