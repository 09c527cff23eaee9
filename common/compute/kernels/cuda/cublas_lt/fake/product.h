#ifndef COMMON_COMPUTE_KERNELS_CUDA_CUBLAS_LT_FAKE_PRODUCT_H_
#define COMMON_COMPUTE_KERNELS_CUDA_CUBLAS_LT_FAKE_PRODUCT_H_

#include <cstddef>
#include <cstdint>

#include "common/compute/kernels/cuda/cublas_lt/cublas_lt_api.h"

namespace muster {
namespace cublas_lt {

// The objects to which the handles of the fake library point.
struct MatmulDescription {
  CublasComputeType compute_type = CublasComputeType::kFloat32;
  CudaDataType scale_type = CudaDataType::kFloat32;
  Operation transpose_a = Operation::kNone;
  Operation transpose_b = Operation::kNone;
  Epilogue epilogue = Epilogue::kDefault;
  const void* bias = nullptr;
};
struct MatrixLayout {
  CudaDataType type = CudaDataType::kFloat32;
  uint64_t rows = 0;
  uint64_t columns = 0;
  int64_t leading_dimension = 0;
  int32_t batch_count = 1;
  int64_t batch_stride = 0;
};

}  // namespace cublas_lt

// A product as cuBLASLt defines it: d = epilogue(alpha op(a) op(b) + beta c).
// Matrices are in column order.
struct FakeProduct {
  cublas_lt::MatmulDescription operation;
  cublas_lt::MatrixLayout a, b, c, d;
  double alpha = 1;
  double beta = 0;
  const void* a_data = nullptr;
  const void* b_data = nullptr;
  const void* c_data = nullptr;
  void* d_data = nullptr;

  // The extents of op(a) op(b).
  uint64_t rows() const;
  uint64_t columns() const;
  uint64_t inner() const;

  // True if the descriptors are consistent and cuBLASLt lists their types.
  bool IsValid() const;

  // A hash of all properties that algorithms depend on: everything except the
  // data.
  uint64_t Fingerprint() const;

  void Compute() const;
};

// The bytes from the first element to the last.
size_t FakeSizeBytes(const cublas_lt::MatrixLayout& layout);
size_t FakeElementBytes(cublas_lt::CudaDataType type);
bool FakeHasBias(cublas_lt::Epilogue epilogue);

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CUDA_CUBLAS_LT_FAKE_PRODUCT_H_
