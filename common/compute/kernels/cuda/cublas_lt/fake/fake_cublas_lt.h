#ifndef COMMON_COMPUTE_KERNELS_CUDA_CUBLAS_LT_FAKE_FAKE_CUBLAS_LT_H_
#define COMMON_COMPUTE_KERNELS_CUDA_CUBLAS_LT_FAKE_FAKE_CUBLAS_LT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/compute/kernels/cuda/cublas_lt/cublas_lt_api.h"

namespace muster {

// cuBLASLt on simulated GPUs: the functions of the library. Products are work
// of a stream, on the memory of the GPU, computed in double precision.
//
// It is stricter than the library. These are kInvalidValue:
// * descriptors that do not fit each other, and matrices that overlap,
// * types that cuBLASLt does not list together,
// * an algorithm for other descriptors, or less workspace than it needs,
// * an address that is less aligned than was promised when the algorithm was
//   chosen, or memory that is not the GPU's whose context is current.
//
// At most one exists in a process at a time, because the library's functions
// have no argument that tells libraries apart. Thread-safe.
class FakeCublasLt {
 public:
  FakeCublasLt();
  // All that it made must be destroyed.
  ~FakeCublasLt();
  FakeCublasLt(const FakeCublasLt&) = delete;
  FakeCublasLt& operator=(const FakeCublasLt&) = delete;

  const cublas_lt::CublasLtApi& api() const;

  // Makes the `after`-th call of `function` ("cublasLtMatmul") from now on
  // return `result` and do nothing.
  void Fail(absl::string_view function, cublas_lt::Result result,
            int after = 0);

  // Makes the library have no algorithm for products with an epilogue.
  void RefuseEpilogues();

  // The number of calls so far by function.
  std::map<std::string, int64_t> counts() const;

  // Of the products so far.
  std::map<cublas_lt::Epilogue, int64_t> epilogue_counts() const;

  class State;

 private:
  const std::unique_ptr<State> state_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CUDA_CUBLAS_LT_FAKE_FAKE_CUBLAS_LT_H_
