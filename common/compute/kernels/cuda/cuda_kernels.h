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
// Products of matrices and convolutions are computed by the libraries, as far
// as these support them. Libraries choose their algorithms when kernels are
// created, and have their workspace in KernelArguments::scratch. A library that
// cannot use the GPU is logged and left out.
//
// `device` is borrowed for the life of the registry and of its kernels.
KernelRegistry CudaKernels(Device* device, const CudaLibraries& libraries);
// The same with FindCudaLibraries().
KernelRegistry CudaKernels(Device* device);

// Returns the same kernels, run by the simulated grid on memory of this
// process: for tests of the device code. KernelArguments::stream is null.
// `seed` is that of RunSimulatedGrid(). With another than 0, small tensors are
// computed as large ones are: threads take several elements.
KernelRegistry SimulatedCudaKernels(uint64_t seed = 0);

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CUDA_CUDA_KERNELS_H_
