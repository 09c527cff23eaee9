#ifndef COMMON_COMPUTE_KERNELS_CUDA_CUDNN_REAL_CUDNN_H_
#define COMMON_COMPUTE_KERNELS_CUDA_CUDNN_REAL_CUDNN_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/compute/kernels/cuda/cudnn/cudnn_api.h"

namespace muster {

// Returns the cuDNN of this machine, loaded from libcudnn.so.9 by the first
// call. Programs are not linked with it. It lives as long as the process.
// Thread-safe.
//   errors  as LoadCudnn()
absl::StatusOr<const cudnn::CudnnApi*> RealCudnn();

// Loads the functions of `library`, which LoadCudaLibrary() finds. The library
// is never unloaded.
//   kUnavailable  it cannot be loaded, lacks a function, or is older than
//                 cudnn::kVersionMin; names the library, what was expected and
//                 what was found
absl::StatusOr<cudnn::CudnnApi> LoadCudnn(const std::string& library);

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CUDA_CUDNN_REAL_CUDNN_H_
