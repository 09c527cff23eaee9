#ifndef COMMON_COMPUTE_KERNELS_CUDA_CUBLAS_LT_FAKE_FAKE_CUBLAS_LT_H_
#define COMMON_COMPUTE_KERNELS_CUDA_CUBLAS_LT_FAKE_FAKE_CUBLAS_LT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/compute/kernels/cuda/cublas_lt/cublas_lt_api.h"

namespace muster {

// cuBLASLt on simulated GPUs: the functions of the library. Products run as
// work of a stream on the memory of the GPU and are computed in double
// precision.
//
// The fake is stricter than the library. It returns kInvalidValue for:
// * inconsistent descriptors, and matrices that overlap,
// * combinations of types that cuBLASLt does not list,
// * an algorithm for other descriptors, or less workspace than it needs,
// * an address with less alignment than promised for the choice of the
//   algorithm, or memory that does not belong to the GPU of the current
//   context.
//
// A process may have at most one at a time, because the library's functions
// have no argument that identifies the library. Thread-safe.
class FakeCublasLt {
 public:
  FakeCublasLt();
  // Requires that all objects of the library are destroyed.
  ~FakeCublasLt();
  FakeCublasLt(const FakeCublasLt&) = delete;
  FakeCublasLt& operator=(const FakeCublasLt&) = delete;

  const cublas_lt::CublasLtApi& api() const;

  // Makes the `after`-th call of `function` ("cublasLtMatmul") from now on
  // return `result` and do nothing.
  void Fail(absl::string_view function, cublas_lt::Result result,
            int after = 0);

  // Makes the library return no algorithm for products with an epilogue.
  void RefuseEpilogues();

  // The number of calls so far by function.
  std::map<std::string, int64_t> counts() const;

  // The number of products so far by epilogue.
  std::map<cublas_lt::Epilogue, int64_t> epilogue_counts() const;

  class State;

 private:
  const std::unique_ptr<State> state_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CUDA_CUBLAS_LT_FAKE_FAKE_CUBLAS_LT_H_
