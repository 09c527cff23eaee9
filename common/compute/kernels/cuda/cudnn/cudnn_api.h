#ifndef COMMON_COMPUTE_KERNELS_CUDA_CUDNN_CUDNN_API_H_
#define COMMON_COMPUTE_KERNELS_CUDA_CUDNN_CUDNN_API_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "common/core/device/driver/driver_api.h"

// The part of cuDNN's backend API that Muster calls, declared again here, so
// that building, testing and running without GPUs needs neither cuDNN's header
// nor its library. Names, types and meanings are cuDNN's.
//
// Source: cuDNN documentation, "Backend API", 9.0 and later.
namespace muster::cudnn {

// cudnnStatus_t. Thousands are categories.
using Result = int;
inline constexpr Result kSuccess = 0;
inline constexpr Result kNotInitialized = 1001;
inline constexpr Result kBadParam = 2000;
inline constexpr Result kNotSupported = 3000;
inline constexpr Result kInternalError = 4000;
inline constexpr Result kHostAllocationFailed = 4003;
inline constexpr Result kDeviceAllocationFailed = 4004;
inline constexpr Result kExecutionFailed = 5000;
inline constexpr Result CategoryOf(Result result) {
  return result / 1000 * 1000;
}

// cudnnDataType_t.
enum class CudnnDataType : int {
  kFloat32 = 0,
  kFloat64 = 1,
  kFloat16 = 2,
  kInt32 = 4,
  kBfloat16 = 9,
  kBool = 11,
};

// cudnnConvolutionMode_t.
enum class ConvolutionMode : int { kCrossCorrelation = 1 };

// cudnnPointwiseMode_t.
enum class PointwiseMode : int {
  kAdd = 0,
  kMul = 1,
  kDiv = 6,
  kSub = 9,
  kExp = 13,
  kLog = 15,
  kGreaterEqual = 303,
  kIndex = 501,
  kSelect = 601,
};

// cudnnReduceTensorOp_t.
enum class ReductionOperator : int { kAdd = 0, kMax = 3 };

// cudnnBackendHeurMode_t: which configurations of engines are returned.
enum class HeuristicMode : int { kFallback = 2, kA = 3 };

// cudnnBackendNumericalNote_t: how an engine computes.
enum class NumericalNote : int {
  kTensorCore = 0,
  kDownConvertInputs = 1,
  kReducedPrecisionReduction = 2,
  kNondeterministic = 4,
};

// cudnnBackendBehaviorNote_t.
enum class BehaviorNote : int { kRuntimeCompilation = 0 };

// cudnnBackendDescriptorType_t.
enum class DescriptorType : int {
  kPointwise = 0,
  kConvolution = 1,
  kEngine = 2,
  kEngineConfig = 3,
  kEngineHeuristic = 4,
  kExecutionPlan = 5,
  kConvolutionForward = 10,
  kConvolutionBackwardFilter = 11,
  kConvolutionBackwardData = 12,
  kPointwiseOperation = 13,
  kOperationGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
  kMatMul = 18,
  kMatMulOperation = 19,
  kReduction = 21,
  kReductionOperation = 22,
  kReshapeOperation = 31,
  kDeviceProperties = 38,
};

// cudnnBackendAttributeType_t.
enum class AttributeType : int {
  kHandle = 0,
  kDataType = 1,
  kBoolean = 2,
  kInt64 = 3,
  kFloat = 4,
  kDouble = 5,
  kVoidPointer = 6,
  kConvolutionMode = 7,
  kHeuristicMode = 8,
  kNumericalNote = 11,
  kPointwiseMode = 14,
  kDescriptor = 15,
  kReductionOperator = 18,
  kBehaviorNote = 19,
  kChar = 24,
};

// cudnnBackendAttributeName_t.
enum class AttributeName : int {
  kPointwiseMode = 0,
  kPointwiseComputeType = 1,
  kPointwiseAxis = 9,

  kConvolutionComputeType = 100,
  kConvolutionMode = 101,
  kConvolutionDilations = 102,
  kConvolutionStrides = 103,
  kConvolutionPostPaddings = 104,
  kConvolutionPrePaddings = 105,
  kConvolutionSpatialDimensions = 106,

  kHeuristicMode = 200,
  kHeuristicOperationGraph = 201,
  kHeuristicResults = 202,
  kHeuristicDeviceProperties = 204,

  kEngineConfigEngine = 300,

  kPlanHandle = 400,
  kPlanEngineConfig = 401,
  kPlanWorkspaceSize = 402,
  kPlanDeviceProperties = 407,

  kForwardAlpha = 700,
  kForwardBeta = 701,
  kForwardConvolution = 702,
  kForwardW = 703,
  kForwardX = 704,
  kForwardY = 705,
  kBackwardDataAlpha = 706,
  kBackwardDataBeta = 707,
  kBackwardDataConvolution = 708,
  kBackwardDataW = 709,
  kBackwardDataDx = 710,
  kBackwardDataDy = 711,
  kBackwardFilterAlpha = 712,
  kBackwardFilterBeta = 713,
  kBackwardFilterConvolution = 714,
  kBackwardFilterDw = 715,
  kBackwardFilterX = 716,
  kBackwardFilterDy = 717,

  kPointwiseOperationPointwise = 750,
  kPointwiseOperationX = 751,
  kPointwiseOperationB = 752,
  kPointwiseOperationY = 753,
  kPointwiseOperationT = 758,

  kGraphHandle = 800,
  kGraphOperations = 801,

  kTensorByteAlignment = 900,
  kTensorDataType = 901,
  kTensorDimensions = 902,
  kTensorStrides = 903,
  kTensorUniqueId = 906,
  kTensorIsVirtual = 907,
  kTensorIsByValue = 908,

  kPackUniqueIds = 1000,
  kPackDataPointers = 1001,
  kPackWorkspace = 1003,

  kEngineNumericalNotes = 1303,
  kEngineBehaviorNotes = 1305,

  kMatMulComputeType = 1500,
  kMatMulOperationA = 1520,
  kMatMulOperationB = 1521,
  kMatMulOperationC = 1522,
  kMatMulOperationMatMul = 1523,

  kReductionOperator = 1600,
  kReductionComputeType = 1601,
  kReductionOperationX = 1610,
  kReductionOperationY = 1611,
  kReductionOperationReduction = 1612,

  kReshapeOperationX = 2200,
  kReshapeOperationY = 2201,

  kDevicePropertiesJson = 2702,
};

// cudnnHandle_t is a pointer to this.
struct Handle;
// cudnnBackendDescriptor_t.
using Descriptor = void*;

// The oldest version with this API.
inline constexpr size_t kVersionMin = 90000;

// F(name, type) for each function.
#define MUSTER_CUDNN_FUNCTIONS(F)                                              \
  F(cudnnGetVersion, size_t())                                                 \
  F(cudnnGetErrorString, const char*(Result))                                  \
  F(cudnnGetLastErrorString, void(char*, size_t))                              \
  F(cudnnCreate, Result(Handle**))                                             \
  F(cudnnDestroy, Result(Handle*))                                             \
  F(cudnnSetStream, Result(Handle*, driver::StreamHandle*))                    \
  F(cudnnBackendCreateDescriptor, Result(DescriptorType, Descriptor*))         \
  F(cudnnBackendDestroyDescriptor, Result(Descriptor))                         \
  F(cudnnBackendFinalize, Result(Descriptor))                                  \
  F(cudnnBackendSetAttribute,                                                  \
    Result(Descriptor, AttributeName, AttributeType, int64_t, const void*))    \
  F(cudnnBackendGetAttribute, Result(Descriptor, AttributeName, AttributeType, \
                                     int64_t, int64_t*, void*))                \
  F(cudnnBackendExecute, Result(Handle*, Descriptor, Descriptor))

// A library: the functions of libcudnn.so.9 (RealCudnn()), or of a fake library
// on simulated GPUs (fake/fake_cudnn.h).
struct CudnnApi {
#define MUSTER_CUDNN_MEMBER(name, type) std::add_pointer_t<type> name = nullptr;
  MUSTER_CUDNN_FUNCTIONS(MUSTER_CUDNN_MEMBER)
#undef MUSTER_CUDNN_MEMBER

  size_t version = 0;  // 91900 for 9.19.0.
  // True if it works on simulated GPUs only.
  bool is_simulated = false;
};

// "9.19.0".
inline std::string VersionString(size_t version) {
  return absl::StrCat(version / 10000, ".", version % 10000 / 100, ".",
                      version % 100);
}

}  // namespace muster::cudnn

#endif  // COMMON_COMPUTE_KERNELS_CUDA_CUDNN_CUDNN_API_H_
