#ifndef COMMON_COMPUTE_KERNELS_CUDA_CUDA_KERNELS_H_
#define COMMON_COMPUTE_KERNELS_CUDA_CUDA_KERNELS_H_

#include <cstdint>

#include "common/compute/kernels/cuda/cuda_libraries.h"
#include "common/compute/kernels/kernel.h"
#include "common/core/device/device.h"

namespace muster {

// Returns the kernels of a GPU, real or simulated. They take operands in its
// memory, enqueue their work on KernelArguments::stream, and report data errors
// by DataError(). All results are reproducible: there are no atomic operations
// on floats, and sums have a fixed order.
//
// The libraries compute products of matrices and convolutions if they support
// them. They choose their algorithms when kernels are created, and use
// KernelArguments::scratch as workspace. A library that cannot use the GPU is
// logged and not used.
//
// `device` is borrowed for the life of the registry and of its kernels.
KernelRegistry CudaKernels(Device* device, const CudaLibraries& libraries);
// As above, with FindCudaLibraries().
KernelRegistry CudaKernels(Device* device);

// Returns the same kernels, run by the simulated grid on memory of this
// process: for tests of the device code. KernelArguments::stream is null.
// `seed` is passed to RunSimulatedGrid(). If it is not 0, threads process
// several elements each even for small tensors, as they do for large ones.
KernelRegistry SimulatedCudaKernels(uint64_t seed = 0);

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CUDA_CUDA_KERNELS_H_
