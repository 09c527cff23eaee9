#include "common/compute/kernels/cuda/cublas_lt/cublas_lt.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"

namespace muster {

using cublas_lt::CublasComputeType;
using cublas_lt::CudaDataType;
using cublas_lt::Operation;

namespace {

// NVIDIA's recommendation for the H100. Other GPUs need less.
constexpr uint64_t kWorkspaceBytesMax = 32 << 20;

constexpr float kOne = 1;
constexpr float kZero = 0;
constexpr double kDoubleOne = 1;
constexpr double kDoubleZero = 0;

#define MUSTER_CALL(api, function, ...) \
  CublasLtStatus((api), (api).function(__VA_ARGS__), #function)

CudaDataType DataTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return CudaDataType::kFloat64;
    case DType::kFloat16:
      return CudaDataType::kFloat16;
    case DType::kBfloat16:
      return CudaDataType::kBfloat16;
    default:
      MUSTER_CHECK(dtype == DType::kFloat32);
      return CudaDataType::kFloat32;
  }
}

CublasComputeType ComputeTypeOf(const MatMulProblem& problem) {
  if (problem.dtype == DType::kFloat64) return CublasComputeType::kFloat64;
  return problem.dtype == DType::kFloat32 && problem.tensor_float_32
             ? CublasComputeType::kTensorFloat32
             : CublasComputeType::kFloat32;
}

// Returns the type of the factors alpha and beta.
CudaDataType ScaleTypeOf(DType dtype) {
  return dtype == DType::kFloat64 ? CudaDataType::kFloat64
                                  : CudaDataType::kFloat32;
}

bool HasBias(cublas_lt::Epilogue epilogue) {
  return (static_cast<uint32_t>(epilogue) &
          static_cast<uint32_t>(cublas_lt::Epilogue::kBias)) != 0;
}

Operation OperationOf(bool is_transposed) {
  return is_transposed ? Operation::kTranspose : Operation::kNone;
}

bool IsAligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % MatMulPlan::kAlignmentBytes ==
         0;
}

}  // namespace

absl::Status CublasLtStatus(const cublas_lt::CublasLtApi& api,
                            cublas_lt::Result result,
                            absl::string_view function) {
  if (result == cublas_lt::kSuccess) return absl::OkStatus();
  const std::string message = absl::StrCat(
      function, " of cuBLASLt failed: ", api.cublasLtGetStatusString(result),
      " (", result, ")");
  switch (result) {
    case cublas_lt::kNotSupported:
    case cublas_lt::kArchMismatch:
      return absl::UnimplementedError(message);
    case cublas_lt::kAllocFailed:
      return absl::ResourceExhaustedError(message);
    case cublas_lt::kNotInitialized:
      return absl::UnavailableError(message);
    default:
      return absl::InternalError(message);
  }
}

absl::StatusOr<std::shared_ptr<CublasLt>> CublasLt::Create(
    const cublas_lt::CublasLtApi* api, Device* device) {
  std::shared_ptr<CublasLt> library(new CublasLt(api, device));
  RETURN_IF_ERROR(device->context().MakeCurrent());
  const absl::Status created =
      MUSTER_CALL(*api, cublasLtCreate, &library->handle_);
  if (!created.ok()) return absl::UnavailableError(created.message());
  return library;
}

CublasLt::~CublasLt() {
  if (handle_ != nullptr && device_.context().MakeCurrent().ok()) {
    api_.cublasLtDestroy(handle_);
  }
}

MatMulDescriptors::MatMulDescriptors(const cublas_lt::CublasLtApi* api)
    : api_(api),
      operation_(nullptr, api->cublasLtMatmulDescDestroy),
      a_(nullptr, api->cublasLtMatrixLayoutDestroy),
      b_(nullptr, api->cublasLtMatrixLayoutDestroy),
      y_(nullptr, api->cublasLtMatrixLayoutDestroy) {}

absl::StatusOr<MatMulDescriptors> MatMulDescriptors::Create(
    const cublas_lt::CublasLtApi* api, const MatMulProblem& problem) {
  MatMulDescriptors descriptors(api);
  RETURN_IF_ERROR(descriptors.Describe(problem));
  const int64_t rows = problem.rows;
  const int64_t columns = problem.columns;
  const int64_t inner = problem.inner;
  ASSIGN_OR_RETURN(
      descriptors.a_,
      descriptors.MakeLayout(problem.dtype, problem.transpose_a ? inner : rows,
                             problem.transpose_a ? rows : inner,
                             problem.batch_count, problem.a_batch_stride));
  ASSIGN_OR_RETURN(descriptors.b_,
                   descriptors.MakeLayout(
                       problem.dtype, problem.transpose_b ? columns : inner,
                       problem.transpose_b ? inner : columns,
                       problem.batch_count, problem.b_batch_stride));
  ASSIGN_OR_RETURN(descriptors.y_,
                   descriptors.MakeLayout(problem.dtype, rows, columns,
                                          problem.batch_count, rows * columns));
  return descriptors;
}

absl::Status MatMulDescriptors::Describe(const MatMulProblem& problem) {
  cublas_lt::MatmulDescription* made = nullptr;
  RETURN_IF_ERROR(MUSTER_CALL(*api_, cublasLtMatmulDescCreate, &made,
                              ComputeTypeOf(problem),
                              ScaleTypeOf(problem.dtype)));
  operation_.reset(made);
  const auto set = [&](cublas_lt::MatmulAttribute attribute, auto value) {
    return MUSTER_CALL(*api_, cublasLtMatmulDescSetAttribute, made, attribute,
                       &value, sizeof(value));
  };
  RETURN_IF_ERROR(set(cublas_lt::MatmulAttribute::kTransposeA,
                      OperationOf(problem.transpose_b)));
  RETURN_IF_ERROR(set(cublas_lt::MatmulAttribute::kTransposeB,
                      OperationOf(problem.transpose_a)));
  RETURN_IF_ERROR(set(cublas_lt::MatmulAttribute::kEpilogue, problem.epilogue));
  if (!HasBias(problem.epilogue)) return absl::OkStatus();
  // The library chooses algorithms by the alignment of this address; each run
  // sets the actual address.
  return set(
      cublas_lt::MatmulAttribute::kBiasPointer,
      reinterpret_cast<const void*>(uintptr_t{MatMulPlan::kAlignmentBytes}));
}

// Describes the memory of a row-order matrix as its transpose in column order.
absl::StatusOr<MatMulDescriptors::Layout> MatMulDescriptors::MakeLayout(
    DType dtype, int64_t memory_rows, int64_t memory_columns,
    int64_t batch_count, int64_t batch_stride) const {
  cublas_lt::MatrixLayout* made = nullptr;
  RETURN_IF_ERROR(MUSTER_CALL(
      *api_, cublasLtMatrixLayoutCreate, &made, DataTypeOf(dtype),
      static_cast<uint64_t>(memory_columns), static_cast<uint64_t>(memory_rows),
      /*leading dimension*/ memory_columns));
  Layout layout(made, api_->cublasLtMatrixLayoutDestroy);
  if (batch_count == 1) return layout;
  const auto count = static_cast<int32_t>(batch_count);
  RETURN_IF_ERROR(MUSTER_CALL(*api_, cublasLtMatrixLayoutSetAttribute, made,
                              cublas_lt::LayoutAttribute::kBatchCount, &count,
                              sizeof(count)));
  RETURN_IF_ERROR(MUSTER_CALL(*api_, cublasLtMatrixLayoutSetAttribute, made,
                              cublas_lt::LayoutAttribute::kBatchStride,
                              &batch_stride, sizeof(batch_stride)));
  return layout;
}

absl::StatusOr<std::unique_ptr<MatMulPlan>> MatMulPlan::Create(
    std::shared_ptr<CublasLt> library, const MatMulProblem& problem) {
  RETURN_IF_ERROR(library->device().context().MakeCurrent());
  ASSIGN_OR_RETURN(MatMulDescriptors descriptors,
                   MatMulDescriptors::Create(&library->api(), problem));
  std::unique_ptr<MatMulPlan> plan(
      new MatMulPlan(std::move(library), std::move(descriptors)));
  if (problem.dtype == DType::kFloat64) {
    plan->one_ = &kDoubleOne;
    plan->zero_ = &kDoubleZero;
  } else {
    plan->one_ = &kOne;
    plan->zero_ = &kZero;
  }
  RETURN_IF_ERROR(plan->ChooseAlgorithm());
  return plan;
}

absl::Status MatMulPlan::ChooseAlgorithm() {
  const cublas_lt::CublasLtApi& api = library_->api();
  cublas_lt::Preference* made = nullptr;
  RETURN_IF_ERROR(MUSTER_CALL(api, cublasLtMatmulPreferenceCreate, &made));
  const std::unique_ptr<cublas_lt::Preference,
                        decltype(api.cublasLtMatmulPreferenceDestroy)>
      preference(made, api.cublasLtMatmulPreferenceDestroy);
  const auto set = [&](cublas_lt::PreferenceAttribute attribute, auto value) {
    return MUSTER_CALL(api, cublasLtMatmulPreferenceSetAttribute, made,
                       attribute, &value, sizeof(value));
  };
  using Attribute = cublas_lt::PreferenceAttribute;
  RETURN_IF_ERROR(set(Attribute::kWorkspaceBytesMax, kWorkspaceBytesMax));
  // Partial sums must not be rounded to 16 bits before they are added.
  RETURN_IF_ERROR(
      set(Attribute::kReductionSchemes, cublas_lt::kReductionInComputeType));
  for (const Attribute operand :
       {Attribute::kAlignmentABytes, Attribute::kAlignmentBBytes,
        Attribute::kAlignmentCBytes, Attribute::kAlignmentDBytes}) {
    RETURN_IF_ERROR(set(operand, uint32_t{kAlignmentBytes}));
  }
  cublas_lt::HeuristicResult best;
  int found_count = 0;
  RETURN_IF_ERROR(MUSTER_CALL(
      api, cublasLtMatmulAlgoGetHeuristic, library_->handle(),
      descriptors_.operation(), descriptors_.b(), descriptors_.a(),
      descriptors_.y(), descriptors_.y(), made, 1, &best, &found_count));
  if (found_count == 0 || best.state != cublas_lt::kSuccess) {
    return absl::UnimplementedError("cuBLASLt has no algorithm for a product");
  }
  algorithm_ = best.algorithm;
  workspace_bytes_ = best.workspace_bytes;
  return absl::OkStatus();
}

absl::Status MatMulPlan::Run(DeviceStream* stream, const void* a, const void* b,
                             const void* bias, void* y, void* workspace) {
  for (const void* address : {a, b, bias, const_cast<const void*>(y),
                              const_cast<const void*>(workspace)}) {
    if (!IsAligned(address)) {
      return absl::InternalError(absl::StrCat(
          "an operand of a product is at ",
          reinterpret_cast<uintptr_t>(address), ", which is not a multiple of ",
          kAlignmentBytes, " bytes"));
    }
  }
  return stream->Call(
      {this, a, b, bias, y, workspace},
      [this, a, b, bias, y, workspace](driver::StreamHandle* handle) {
        return Enqueue(handle, a, b, bias, y, workspace);
      });
}

absl::Status MatMulPlan::Enqueue(driver::StreamHandle* stream, const void* a,
                                 const void* b, const void* bias, void* y,
                                 void* workspace) {
  const cublas_lt::CublasLtApi& api = library_->api();
  RETURN_IF_ERROR(library_->device().context().MakeCurrent());
  if (bias != nullptr) {
    RETURN_IF_ERROR(MUSTER_CALL(
        api, cublasLtMatmulDescSetAttribute, descriptors_.operation(),
        cublas_lt::MatmulAttribute::kBiasPointer, &bias, sizeof(bias)));
  }
  const cublas_lt::Result result = api.cublasLtMatmul(
      library_->handle(), descriptors_.operation(), one_, b, descriptors_.b(),
      a, descriptors_.a(), zero_, y, descriptors_.y(), y, descriptors_.y(),
      &algorithm_, workspace, workspace_bytes_, stream);
  // Reports a lost GPU instead of a failed call.
  if (result == cublas_lt::kExecutionFailed) {
    RETURN_IF_ERROR(library_->device().CheckHealth());
  }
  return CublasLtStatus(api, result, "cublasLtMatmul");
}

#undef MUSTER_CALL

}  // namespace muster
