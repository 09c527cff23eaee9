#ifndef COMMON_COMPUTE_KERNELS_CUDA_CUDA_LIBRARIES_H_
#define COMMON_COMPUTE_KERNELS_CUDA_CUDA_LIBRARIES_H_

#include <string>

#include "common/compute/kernels/cuda/cublas_lt/cublas_lt_api.h"
#include "common/compute/kernels/cuda/cudnn/cudnn_api.h"
#include "common/core/device/device.h"

namespace muster {

// The libraries of NVIDIA that kernels call. If one is null, kernels of Muster
// replace it.
struct CudaLibraries {
  const cublas_lt::CublasLtApi* cublas_lt = nullptr;  // Products of matrices.
  const cudnn::CudnnApi* cudnn = nullptr;  // Convolutions and attention.

  // "cuBLASLt 13.1.0, cuDNN 9.19.0"; "none".
  std::string ToString() const;
};

// Returns the libraries of this machine that work on `device`: none on a
// simulated GPU. Logs a missing library once in a process. Thread-safe.
CudaLibraries FindCudaLibraries(const Device& device);

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CUDA_CUDA_LIBRARIES_H_
