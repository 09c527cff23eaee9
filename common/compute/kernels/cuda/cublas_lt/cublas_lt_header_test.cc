// Compares cublas_lt_api.h with cuBLASLt's own header, if the CUDA toolkit
// contains it. The compiler does the comparison.
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "common/compute/kernels/cuda/cublas_lt/cublas_lt_api.h"
#include "common/core/device/testing/same_shape.h"
#include "gtest/gtest.h"

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>

namespace muster::cublas_lt {
namespace {

#define MUSTER_COMPARE(name, type)                      \
  static_assert(kHaveSameShape<type, decltype(::name)>, \
                "cublas_lt_api.h declares " #name       \
                " otherwise than cublasLt.h");
MUSTER_CUBLAS_LT_FUNCTIONS(MUSTER_COMPARE)
#undef MUSTER_COMPARE

static_assert(kSuccess == CUBLAS_STATUS_SUCCESS);
static_assert(kNotInitialized == CUBLAS_STATUS_NOT_INITIALIZED);
static_assert(kAllocFailed == CUBLAS_STATUS_ALLOC_FAILED);
static_assert(kInvalidValue == CUBLAS_STATUS_INVALID_VALUE);
static_assert(kArchMismatch == CUBLAS_STATUS_ARCH_MISMATCH);
static_assert(kExecutionFailed == CUBLAS_STATUS_EXECUTION_FAILED);
static_assert(kInternalError == CUBLAS_STATUS_INTERNAL_ERROR);
static_assert(kNotSupported == CUBLAS_STATUS_NOT_SUPPORTED);

template <typename Ours, typename Theirs>
constexpr bool AreEqual(Ours ours, Theirs theirs) {
  return static_cast<int64_t>(ours) == static_cast<int64_t>(theirs);
}

static_assert(AreEqual(CudaDataType::kFloat32, CUDA_R_32F));
static_assert(AreEqual(CudaDataType::kFloat64, CUDA_R_64F));
static_assert(AreEqual(CudaDataType::kFloat16, CUDA_R_16F));
static_assert(AreEqual(CudaDataType::kBfloat16, CUDA_R_16BF));

static_assert(AreEqual(CublasComputeType::kFloat32, CUBLAS_COMPUTE_32F));
static_assert(AreEqual(CublasComputeType::kFloat64, CUBLAS_COMPUTE_64F));
static_assert(AreEqual(CublasComputeType::kTensorFloat32,
                       CUBLAS_COMPUTE_32F_FAST_TF32));

static_assert(AreEqual(Operation::kNone, CUBLAS_OP_N));
static_assert(AreEqual(Operation::kTranspose, CUBLAS_OP_T));

static_assert(AreEqual(Epilogue::kDefault, CUBLASLT_EPILOGUE_DEFAULT));
static_assert(AreEqual(Epilogue::kRelu, CUBLASLT_EPILOGUE_RELU));
static_assert(AreEqual(Epilogue::kBias, CUBLASLT_EPILOGUE_BIAS));
static_assert(AreEqual(Epilogue::kReluBias, CUBLASLT_EPILOGUE_RELU_BIAS));
static_assert(AreEqual(Epilogue::kGelu, CUBLASLT_EPILOGUE_GELU));
static_assert(AreEqual(Epilogue::kGeluBias, CUBLASLT_EPILOGUE_GELU_BIAS));

static_assert(AreEqual(MatmulAttribute::kComputeType,
                       CUBLASLT_MATMUL_DESC_COMPUTE_TYPE));
static_assert(AreEqual(MatmulAttribute::kScaleType,
                       CUBLASLT_MATMUL_DESC_SCALE_TYPE));
static_assert(AreEqual(MatmulAttribute::kTransposeA,
                       CUBLASLT_MATMUL_DESC_TRANSA));
static_assert(AreEqual(MatmulAttribute::kTransposeB,
                       CUBLASLT_MATMUL_DESC_TRANSB));
static_assert(AreEqual(MatmulAttribute::kEpilogue,
                       CUBLASLT_MATMUL_DESC_EPILOGUE));
static_assert(AreEqual(MatmulAttribute::kBiasPointer,
                       CUBLASLT_MATMUL_DESC_BIAS_POINTER));

static_assert(AreEqual(LayoutAttribute::kType, CUBLASLT_MATRIX_LAYOUT_TYPE));
static_assert(AreEqual(LayoutAttribute::kRows, CUBLASLT_MATRIX_LAYOUT_ROWS));
static_assert(AreEqual(LayoutAttribute::kColumns, CUBLASLT_MATRIX_LAYOUT_COLS));
static_assert(AreEqual(LayoutAttribute::kLeadingDimension,
                       CUBLASLT_MATRIX_LAYOUT_LD));
static_assert(AreEqual(LayoutAttribute::kBatchCount,
                       CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT));
static_assert(AreEqual(LayoutAttribute::kBatchStride,
                       CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET));

static_assert(AreEqual(PreferenceAttribute::kWorkspaceBytesMax,
                       CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES));
static_assert(AreEqual(PreferenceAttribute::kReductionSchemes,
                       CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK));
static_assert(AreEqual(PreferenceAttribute::kAlignmentABytes,
                       CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES));
static_assert(AreEqual(PreferenceAttribute::kAlignmentBBytes,
                       CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES));
static_assert(AreEqual(PreferenceAttribute::kAlignmentCBytes,
                       CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES));
static_assert(AreEqual(PreferenceAttribute::kAlignmentDBytes,
                       CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES));
static_assert(AreEqual(kReductionInComputeType,
                       CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));

static_assert(sizeof(MatmulAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(HeuristicResult) ==
              sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(HeuristicResult, workspace_bytes) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(HeuristicResult, state) ==
              offsetof(cublasLtMatmulHeuristicResult_t, state));

TEST(CublasLtHeaderTest, VersionsAreNumberedAsTheHeaderDoes) {
  EXPECT_EQ(VersionString(CUBLAS_VERSION),
            absl::StrCat(CUBLAS_VER_MAJOR, ".", CUBLAS_VER_MINOR, ".",
                         CUBLAS_VER_PATCH));
}

}  // namespace
}  // namespace muster::cublas_lt

#else

TEST(CublasLtHeaderTest, VersionsAreNumberedAsTheHeaderDoes) {
  GTEST_SKIP() << "the CUDA toolkit has no cublasLt.h";
}

#endif
