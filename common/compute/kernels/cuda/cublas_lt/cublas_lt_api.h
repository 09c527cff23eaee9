#ifndef COMMON_COMPUTE_KERNELS_CUDA_CUBLAS_LT_CUBLAS_LT_API_H_
#define COMMON_COMPUTE_KERNELS_CUDA_CUBLAS_LT_CUBLAS_LT_API_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "common/core/device/driver/driver_api.h"

// The part of cuBLASLt that Muster calls, declared again here, so that
// building, testing and running without GPUs needs neither cuBLASLt's header
// nor its library. Names, types and meanings are cuBLASLt's. Matrices are in
// column order.
//
// Source: cuBLAS documentation, "Using the cuBLASLt API", 12.0 and later.
namespace muster::cublas_lt {

// cublasStatus_t.
using Result = int;
inline constexpr Result kSuccess = 0;
inline constexpr Result kNotInitialized = 1;
inline constexpr Result kAllocFailed = 3;
inline constexpr Result kInvalidValue = 7;
inline constexpr Result kArchMismatch = 8;
inline constexpr Result kExecutionFailed = 13;
inline constexpr Result kInternalError = 14;
inline constexpr Result kNotSupported = 15;

// cudaDataType_t.
enum class CudaDataType : int32_t {
  kFloat32 = 0,
  kFloat64 = 1,
  kFloat16 = 2,
  kBfloat16 = 14
};

// cublasComputeType_t.
enum class CublasComputeType : int32_t {
  kFloat32 = 68,
  kFloat64 = 70,
  // Float32 operands are rounded to TF32, which has 10 bits of mantissa.
  kTensorFloat32 = 77,
};

// cublasOperation_t.
enum class Operation : int32_t { kNone = 0, kTranspose = 1 };

// cublasLtEpilogue_t: operations after the product. The bias has an element for
// each row of the result. kGelu is the approximation by tanh.
enum class Epilogue : uint32_t {
  kDefault = 1,
  kRelu = 2,
  kBias = 4,
  kReluBias = 6,
  kGelu = 32,
  kGeluBias = 36,
};

// cublasLtMatmulDescAttributes_t.
enum class MatmulAttribute : int {
  kComputeType = 0,
  kScaleType = 1,
  kTransposeA = 3,
  kTransposeB = 4,
  kEpilogue = 7,
  kBiasPointer = 8,
};

// cublasLtMatrixLayoutAttribute_t.
enum class LayoutAttribute : int {
  kType = 0,
  kRows = 2,
  kColumns = 3,
  kLeadingDimension = 4,
  kBatchCount = 5,
  kBatchStride = 6,
};

// cublasLtMatmulPreferenceAttributes_t.
enum class PreferenceAttribute : int {
  kWorkspaceBytesMax = 1,
  kReductionSchemes = 3,
  kAlignmentABytes = 5,
  kAlignmentBBytes = 6,
  kAlignmentCBytes = 7,
  kAlignmentDBytes = 8,
};

// cublasLtReductionScheme_t, as bits: how partial sums that are computed in
// parallel are added.
inline constexpr uint32_t kReductionInComputeType = 2;

// cublasLtMatmulAlgo_t.
struct MatmulAlgorithm {
  uint64_t data[8] = {};
};

// cublasLtMatmulHeuristicResult_t.
struct HeuristicResult {
  MatmulAlgorithm algorithm;
  size_t workspace_bytes = 0;
  Result state = kNotInitialized;
  float waves_count = 0;
  int reserved[4] = {};
};

// cublasLtHandle_t and the descriptors are pointers to these.
struct Handle;
struct MatmulDescription;
struct MatrixLayout;
struct Preference;

// The oldest version with the algorithms and epilogues in this file.
inline constexpr size_t kVersionMin = 120000;

// F(name, type) for each function.
#define MUSTER_CUBLAS_LT_FUNCTIONS(F)                                        \
  F(cublasLtGetVersion, size_t())                                            \
  F(cublasLtGetStatusString, const char*(Result))                            \
  F(cublasLtCreate, Result(Handle**))                                        \
  F(cublasLtDestroy, Result(Handle*))                                        \
  F(cublasLtMatmulDescCreate,                                                \
    Result(MatmulDescription**, CublasComputeType, CudaDataType))            \
  F(cublasLtMatmulDescDestroy, Result(MatmulDescription*))                   \
  F(cublasLtMatmulDescSetAttribute,                                          \
    Result(MatmulDescription*, MatmulAttribute, const void*, size_t))        \
  F(cublasLtMatrixLayoutCreate,                                              \
    Result(MatrixLayout**, CudaDataType, uint64_t, uint64_t, int64_t))       \
  F(cublasLtMatrixLayoutDestroy, Result(MatrixLayout*))                      \
  F(cublasLtMatrixLayoutSetAttribute,                                        \
    Result(MatrixLayout*, LayoutAttribute, const void*, size_t))             \
  F(cublasLtMatmulPreferenceCreate, Result(Preference**))                    \
  F(cublasLtMatmulPreferenceDestroy, Result(Preference*))                    \
  F(cublasLtMatmulPreferenceSetAttribute,                                    \
    Result(Preference*, PreferenceAttribute, const void*, size_t))           \
  F(cublasLtMatmulAlgoGetHeuristic,                                          \
    Result(Handle*, MatmulDescription*, MatrixLayout*, MatrixLayout*,        \
           MatrixLayout*, MatrixLayout*, Preference*, int, HeuristicResult*, \
           int*))                                                            \
  F(cublasLtMatmul,                                                          \
    Result(Handle*, MatmulDescription*, const void*, const void*,            \
           MatrixLayout*, const void*, MatrixLayout*, const void*,           \
           const void*, MatrixLayout*, void*, MatrixLayout*,                 \
           const MatmulAlgorithm*, void*, size_t, driver::StreamHandle*))

// A library: the functions of libcublasLt.so (RealCublasLt()), or of a fake
// library on simulated GPUs (fake/fake_cublas_lt.h).
struct CublasLtApi {
#define MUSTER_CUBLAS_LT_MEMBER(name, type) \
  std::add_pointer_t<type> name = nullptr;
  MUSTER_CUBLAS_LT_FUNCTIONS(MUSTER_CUBLAS_LT_MEMBER)
#undef MUSTER_CUBLAS_LT_MEMBER

  size_t version = 0;  // 130100 for 13.1.0.
  // True if it works on simulated GPUs only.
  bool is_simulated = false;
};

// "13.1.0".
inline std::string VersionString(size_t version) {
  return absl::StrCat(version / 10000, ".", version % 10000 / 100, ".",
                      version % 100);
}

}  // namespace muster::cublas_lt

#endif  // COMMON_COMPUTE_KERNELS_CUDA_CUBLAS_LT_CUBLAS_LT_API_H_
