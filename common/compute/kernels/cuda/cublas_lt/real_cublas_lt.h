#ifndef COMMON_COMPUTE_KERNELS_CUDA_CUBLAS_LT_REAL_CUBLAS_LT_H_
#define COMMON_COMPUTE_KERNELS_CUDA_CUBLAS_LT_REAL_CUBLAS_LT_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/compute/kernels/cuda/cublas_lt/cublas_lt_api.h"

namespace muster {

// Returns the cuBLASLt of this machine, loaded by the first call: that of CUDA
// 13 or, if it is missing or `driver_version` (13000 for CUDA 13.0) is too old
// for it, that of CUDA 12. All calls must pass the same `driver_version`.
// Programs are not linked with it. It lives as long as the process.
// Thread-safe.
//   errors  as LoadCublasLt()
absl::StatusOr<const cublas_lt::CublasLtApi*> RealCublasLt(int driver_version);

// Loads the functions of `library`, which LoadCudaLibrary() finds. The library
// is never unloaded.
//   kUnavailable  it cannot be loaded, lacks a function, or is older than
//                 cublas_lt::kVersionMin; names the library, what was expected
//                 and what was found
absl::StatusOr<cublas_lt::CublasLtApi> LoadCublasLt(const std::string& library);

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CUDA_CUBLAS_LT_REAL_CUBLAS_LT_H_
