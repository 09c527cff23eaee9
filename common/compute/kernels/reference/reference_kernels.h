#ifndef COMMON_COMPUTE_KERNELS_REFERENCE_REFERENCE_KERNELS_H_
#define COMMON_COMPUTE_KERNELS_REFERENCE_REFERENCE_KERNELS_H_

#include "common/compute/kernels/kernel.h"

namespace muster {

// Kernels for all ops: simple single-threaded loops that define the semantics
// of each op. Fast kernels are tested against them and fall back to them.
//
// 16-bit floats are computed in float32, and sums of float32 in float64.
// Integers wrap around. Lives as long as the process.
const KernelRegistry& ReferenceKernels();

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_REFERENCE_REFERENCE_KERNELS_H_
