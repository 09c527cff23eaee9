#ifndef COMMON_COMPUTE_KERNELS_CUDA_CUDA_KERNELS_H_
#define COMMON_COMPUTE_KERNELS_CUDA_CUDA_KERNELS_H_

#include <cstdint>

#include "common/compute/kernels/kernel.h"

namespace muster {

// Returns the device kernels, run by the simulated grid on memory of this
// process: for tests of the device code. KernelArguments::stream is null.
// `seed` is that of RunSimulatedGrid().
KernelRegistry SimulatedCudaKernels(uint64_t seed = 0);

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CUDA_CUDA_KERNELS_H_
