#ifndef COMMON_COMPUTE_KERNELS_CPU_CPU_KERNELS_H_
#define COMMON_COMPUTE_KERNELS_CPU_CPU_KERNELS_H_

#include "common/compute/kernels/kernel.h"

namespace muster {

// A kernel for every op: fast ones where there are some, in front of the
// reference kernels. Matrix products are oneDNN's; the rest are loops compiled
// for several widths of vectors.
//
// Most are fast for float32 only. Results agree with the reference within
// rounding; on one machine they are the same from run to run.
//
// Lives as long as the process.
const KernelRegistry& CpuKernels();

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CPU_CPU_KERNELS_H_
