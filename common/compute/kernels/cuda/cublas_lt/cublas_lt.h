#ifndef COMMON_COMPUTE_KERNELS_CUDA_CUBLAS_LT_CUBLAS_LT_H_
#define COMMON_COMPUTE_KERNELS_CUDA_CUBLAS_LT_CUBLAS_LT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/compute/kernels/cuda/cublas_lt/cublas_lt_api.h"
#include "common/core/device/device.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/dtype.h"

namespace muster {

// cuBLASLt on one GPU. Thread-safe.
class CublasLt {
 public:
  // `api` and `device` are borrowed for the life of the result.
  //   kUnavailable  the library cannot use the GPU; contains its error
  static absl::StatusOr<std::shared_ptr<CublasLt>> Create(
      const cublas_lt::CublasLtApi* api, Device* device);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  const cublas_lt::CublasLtApi& api() const { return api_; }
  cublas_lt::Handle* handle() const { return handle_; }
  Device& device() const { return device_; }

 private:
  CublasLt(const cublas_lt::CublasLtApi* api, Device* device)
      : api_(*api), device_(*device) {}

  const cublas_lt::CublasLtApi& api_;
  Device& device_;
  cublas_lt::Handle* handle_ = nullptr;
};

// Products of matrices in row order: y = a b, followed by `epilogue`, for each
// matrix of a batch.
struct MatMulProblem {
  DType dtype = DType::kFloat32;  // Of all operands; a floating type.
  int64_t rows = 0;               // Of y. All extents are positive.
  int64_t columns = 0;
  int64_t inner = 0;
  bool transpose_a = false;  // a is [inner, rows] in memory.
  bool transpose_b = false;  // b is [columns, inner] in memory.
  int64_t batch_count = 1;
  // Distance from one matrix to the next, in elements. 0: all products read the
  // same matrix.
  int64_t a_batch_stride = 0;
  int64_t b_batch_stride = 0;
  // The bias has an element for each column of y.
  cublas_lt::Epilogue epilogue = cublas_lt::Epilogue::kDefault;
  // True if float32 operands may be rounded to TF32.
  bool tensor_float_32 = false;
};

// The descriptors of a problem. cuBLASLt expects matrices in column order. In
// that order, the memory of a row-order matrix is its transpose. So the library
// computes y' = b' a', with b as its matrix A, a as B, and y as C and D.
class MatMulDescriptors {
 public:
  // `api` is borrowed for the life of the result. Works without a GPU.
  //   errors  as CublasLtStatus()
  static absl::StatusOr<MatMulDescriptors> Create(
      const cublas_lt::CublasLtApi* api, const MatMulProblem& problem);

  cublas_lt::MatmulDescription* operation() const { return operation_.get(); }
  cublas_lt::MatrixLayout* a() const { return a_.get(); }
  cublas_lt::MatrixLayout* b() const { return b_.get(); }
  cublas_lt::MatrixLayout* y() const { return y_.get(); }

 private:
  using Layout = std::unique_ptr<
      cublas_lt::MatrixLayout,
      decltype(cublas_lt::CublasLtApi::cublasLtMatrixLayoutDestroy)>;

  explicit MatMulDescriptors(const cublas_lt::CublasLtApi* api);
  absl::Status Describe(const MatMulProblem& problem);
  absl::StatusOr<Layout> MakeLayout(DType dtype, int64_t memory_rows,
                                    int64_t memory_columns, int64_t batch_count,
                                    int64_t batch_stride) const;

  const cublas_lt::CublasLtApi* api_;
  std::unique_ptr<cublas_lt::MatmulDescription,
                  decltype(cublas_lt::CublasLtApi::cublasLtMatmulDescDestroy)>
      operation_;
  Layout a_, b_, y_;
};

// A problem with the algorithm that the library has chosen for it. Not
// thread-safe.
class MatMulPlan {
 public:
  // All addresses of operands and of the workspace are multiples of this.
  static constexpr uint32_t kAlignmentBytes = 16;

  //   kUnimplemented  the library does not support the problem
  //   others          as CublasLtStatus()
  static absl::StatusOr<std::unique_ptr<MatMulPlan>> Create(
      std::shared_ptr<CublasLt> library, const MatMulProblem& problem);

  size_t workspace_bytes() const { return workspace_bytes_; }

  // Enqueues the products. Addresses are of the device; `bias` is null unless
  // the epilogue has one; `workspace` has workspace_bytes().
  //   kInternal  an address is not aligned; or as CublasLtStatus()
  absl::Status Run(DeviceStream* stream, const void* a, const void* b,
                   const void* bias, void* y, void* workspace);

 private:
  MatMulPlan(std::shared_ptr<CublasLt> library, MatMulDescriptors descriptors)
      : library_(std::move(library)), descriptors_(std::move(descriptors)) {}

  absl::Status ChooseAlgorithm();
  absl::Status Enqueue(driver::StreamHandle* stream, const void* a,
                       const void* b, const void* bias, void* y,
                       void* workspace);

  const std::shared_ptr<CublasLt> library_;
  const MatMulDescriptors descriptors_;
  const void* one_ = nullptr;  // Factors in the type of the problem.
  const void* zero_ = nullptr;
  cublas_lt::MatmulAlgorithm algorithm_;
  size_t workspace_bytes_ = 0;
};

// Converts the result of a library function to a status.
//   kUnimplemented      the library or the GPU does not support the operation
//   kResourceExhausted  no memory
//   kUnavailable        the library finds no GPU
//   kInternal           any other error
// Messages contain the function and the library's error text.
absl::Status CublasLtStatus(const cublas_lt::CublasLtApi& api,
                            cublas_lt::Result result,
                            absl::string_view function);

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CUDA_CUBLAS_LT_CUBLAS_LT_H_
