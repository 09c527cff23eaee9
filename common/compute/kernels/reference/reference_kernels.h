#ifndef COMMON_COMPUTE_KERNELS_REFERENCE_REFERENCE_KERNELS_H_
#define COMMON_COMPUTE_KERNELS_REFERENCE_REFERENCE_KERNELS_H_

#include "common/compute/kernels/kernel.h"

namespace muster {

// A kernel for every op: plain loops on one thread that say what an op means.
// Fast kernels are tested against these, and stand in front of them.
//
// Sixteen-bit floats are computed in float32; sums of float32 in float64.
// Integers wrap around. Lives as long as the process.
const KernelRegistry& ReferenceKernels();

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_REFERENCE_REFERENCE_KERNELS_H_
