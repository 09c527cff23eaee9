// Compares cudnn_api.h with cuDNN's own header, if the CUDA toolkit contains
// it. The compiler does the comparison.
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/compute/kernels/cuda/cudnn/cudnn_api.h"
#include "common/core/device/testing/same_shape.h"
#include "gtest/gtest.h"

#if __has_include(<cudnn_graph.h>)
#include <cudnn_graph.h>

namespace muster::cudnn {
namespace {

#define MUSTER_COMPARE(name, type)                      \
  static_assert(kHaveSameShape<type, decltype(::name)>, \
                "cudnn_api.h declares " #name " otherwise than cudnn.h");
MUSTER_CUDNN_FUNCTIONS(MUSTER_COMPARE)
#undef MUSTER_COMPARE

// Compares a number in cudnn_api.h with the header's.
#define MUSTER_SAME(ours, theirs)                                           \
  static_assert(static_cast<int64_t>(ours) == static_cast<int64_t>(theirs), \
                "cudnn_api.h has another number for " #theirs)

MUSTER_SAME(kSuccess, CUDNN_STATUS_SUCCESS);
MUSTER_SAME(kNotInitialized, CUDNN_STATUS_NOT_INITIALIZED);
MUSTER_SAME(kBadParam, CUDNN_STATUS_BAD_PARAM);
MUSTER_SAME(kNotSupported, CUDNN_STATUS_NOT_SUPPORTED);
MUSTER_SAME(kInternalError, CUDNN_STATUS_INTERNAL_ERROR);
MUSTER_SAME(kHostAllocationFailed,
            CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
MUSTER_SAME(kDeviceAllocationFailed,
            CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
MUSTER_SAME(kExecutionFailed, CUDNN_STATUS_EXECUTION_FAILED);

MUSTER_SAME(CudnnDataType::kFloat32, CUDNN_DATA_FLOAT);
MUSTER_SAME(CudnnDataType::kFloat64, CUDNN_DATA_DOUBLE);
MUSTER_SAME(CudnnDataType::kFloat16, CUDNN_DATA_HALF);
MUSTER_SAME(CudnnDataType::kInt32, CUDNN_DATA_INT32);
MUSTER_SAME(CudnnDataType::kBfloat16, CUDNN_DATA_BFLOAT16);
MUSTER_SAME(CudnnDataType::kBool, CUDNN_DATA_BOOLEAN);
MUSTER_SAME(ConvolutionMode::kCrossCorrelation, CUDNN_CROSS_CORRELATION);
MUSTER_SAME(PointwiseMode::kAdd, CUDNN_POINTWISE_ADD);
MUSTER_SAME(PointwiseMode::kMul, CUDNN_POINTWISE_MUL);
MUSTER_SAME(PointwiseMode::kDiv, CUDNN_POINTWISE_DIV);
MUSTER_SAME(PointwiseMode::kSub, CUDNN_POINTWISE_SUB);
MUSTER_SAME(PointwiseMode::kExp, CUDNN_POINTWISE_EXP);
MUSTER_SAME(PointwiseMode::kLog, CUDNN_POINTWISE_LOG);
MUSTER_SAME(PointwiseMode::kGreaterEqual, CUDNN_POINTWISE_CMP_GE);
MUSTER_SAME(PointwiseMode::kIndex, CUDNN_POINTWISE_GEN_INDEX);
MUSTER_SAME(PointwiseMode::kSelect, CUDNN_POINTWISE_BINARY_SELECT);
MUSTER_SAME(ReductionOperator::kAdd, CUDNN_REDUCE_TENSOR_ADD);
MUSTER_SAME(ReductionOperator::kMax, CUDNN_REDUCE_TENSOR_MAX);
MUSTER_SAME(HeuristicMode::kFallback, CUDNN_HEUR_MODE_FALLBACK);
MUSTER_SAME(HeuristicMode::kA, CUDNN_HEUR_MODE_A);
MUSTER_SAME(NumericalNote::kTensorCore, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
MUSTER_SAME(NumericalNote::kDownConvertInputs,
            CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
MUSTER_SAME(NumericalNote::kReducedPrecisionReduction,
            CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
MUSTER_SAME(NumericalNote::kNondeterministic,
            CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
MUSTER_SAME(BehaviorNote::kRuntimeCompilation,
            CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);

MUSTER_SAME(DescriptorType::kPointwise, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
MUSTER_SAME(DescriptorType::kPointwiseOperation,
            CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
MUSTER_SAME(DescriptorType::kMatMul, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
MUSTER_SAME(DescriptorType::kMatMulOperation,
            CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
MUSTER_SAME(DescriptorType::kReduction, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
MUSTER_SAME(DescriptorType::kReductionOperation,
            CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
MUSTER_SAME(DescriptorType::kReshapeOperation,
            CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
MUSTER_SAME(DescriptorType::kConvolution, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
MUSTER_SAME(DescriptorType::kEngine, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
MUSTER_SAME(DescriptorType::kEngineConfig, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
MUSTER_SAME(DescriptorType::kEngineHeuristic,
            CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
MUSTER_SAME(DescriptorType::kExecutionPlan,
            CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
MUSTER_SAME(DescriptorType::kConvolutionForward,
            CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
MUSTER_SAME(DescriptorType::kConvolutionBackwardFilter,
            CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
MUSTER_SAME(DescriptorType::kConvolutionBackwardData,
            CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
MUSTER_SAME(DescriptorType::kOperationGraph,
            CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
MUSTER_SAME(DescriptorType::kVariantPack,
            CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
MUSTER_SAME(DescriptorType::kTensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR);

MUSTER_SAME(AttributeType::kHandle, CUDNN_TYPE_HANDLE);
MUSTER_SAME(AttributeType::kDataType, CUDNN_TYPE_DATA_TYPE);
MUSTER_SAME(AttributeType::kBoolean, CUDNN_TYPE_BOOLEAN);
MUSTER_SAME(AttributeType::kInt64, CUDNN_TYPE_INT64);
MUSTER_SAME(AttributeType::kFloat, CUDNN_TYPE_FLOAT);
MUSTER_SAME(AttributeType::kDouble, CUDNN_TYPE_DOUBLE);
MUSTER_SAME(AttributeType::kVoidPointer, CUDNN_TYPE_VOID_PTR);
MUSTER_SAME(AttributeType::kConvolutionMode, CUDNN_TYPE_CONVOLUTION_MODE);
MUSTER_SAME(AttributeType::kHeuristicMode, CUDNN_TYPE_HEUR_MODE);
MUSTER_SAME(AttributeType::kNumericalNote, CUDNN_TYPE_NUMERICAL_NOTE);
MUSTER_SAME(AttributeType::kPointwiseMode, CUDNN_TYPE_POINTWISE_MODE);
MUSTER_SAME(AttributeType::kReductionOperator,
            CUDNN_TYPE_REDUCTION_OPERATOR_TYPE);
MUSTER_SAME(AttributeType::kDescriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR);
MUSTER_SAME(AttributeType::kBehaviorNote, CUDNN_TYPE_BEHAVIOR_NOTE);
MUSTER_SAME(AttributeType::kChar, CUDNN_TYPE_CHAR);

MUSTER_SAME(AttributeName::kPointwiseMode, CUDNN_ATTR_POINTWISE_MODE);
MUSTER_SAME(AttributeName::kPointwiseComputeType,
            CUDNN_ATTR_POINTWISE_MATH_PREC);
MUSTER_SAME(AttributeName::kPointwiseAxis, CUDNN_ATTR_POINTWISE_AXIS);
MUSTER_SAME(AttributeName::kPointwiseOperationPointwise,
            CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
MUSTER_SAME(AttributeName::kPointwiseOperationX,
            CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
MUSTER_SAME(AttributeName::kPointwiseOperationB,
            CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
MUSTER_SAME(AttributeName::kPointwiseOperationY,
            CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
MUSTER_SAME(AttributeName::kPointwiseOperationT,
            CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
MUSTER_SAME(AttributeName::kMatMulComputeType, CUDNN_ATTR_MATMUL_COMP_TYPE);
MUSTER_SAME(AttributeName::kMatMulOperationA,
            CUDNN_ATTR_OPERATION_MATMUL_ADESC);
MUSTER_SAME(AttributeName::kMatMulOperationB,
            CUDNN_ATTR_OPERATION_MATMUL_BDESC);
MUSTER_SAME(AttributeName::kMatMulOperationC,
            CUDNN_ATTR_OPERATION_MATMUL_CDESC);
MUSTER_SAME(AttributeName::kMatMulOperationMatMul,
            CUDNN_ATTR_OPERATION_MATMUL_DESC);
MUSTER_SAME(AttributeName::kReductionOperator, CUDNN_ATTR_REDUCTION_OPERATOR);
MUSTER_SAME(AttributeName::kReductionComputeType,
            CUDNN_ATTR_REDUCTION_COMP_TYPE);
MUSTER_SAME(AttributeName::kReductionOperationX,
            CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
MUSTER_SAME(AttributeName::kReductionOperationY,
            CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
MUSTER_SAME(AttributeName::kReductionOperationReduction,
            CUDNN_ATTR_OPERATION_REDUCTION_DESC);
MUSTER_SAME(AttributeName::kReshapeOperationX,
            CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
MUSTER_SAME(AttributeName::kReshapeOperationY,
            CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
MUSTER_SAME(AttributeName::kConvolutionComputeType,
            CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
MUSTER_SAME(AttributeName::kConvolutionMode, CUDNN_ATTR_CONVOLUTION_CONV_MODE);
MUSTER_SAME(AttributeName::kConvolutionDilations,
            CUDNN_ATTR_CONVOLUTION_DILATIONS);
MUSTER_SAME(AttributeName::kConvolutionStrides,
            CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
MUSTER_SAME(AttributeName::kConvolutionPostPaddings,
            CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
MUSTER_SAME(AttributeName::kConvolutionPrePaddings,
            CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
MUSTER_SAME(AttributeName::kConvolutionSpatialDimensions,
            CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);

MUSTER_SAME(AttributeName::kHeuristicMode, CUDNN_ATTR_ENGINEHEUR_MODE);
MUSTER_SAME(AttributeName::kHeuristicOperationGraph,
            CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
MUSTER_SAME(AttributeName::kHeuristicResults, CUDNN_ATTR_ENGINEHEUR_RESULTS);
MUSTER_SAME(AttributeName::kEngineConfigEngine, CUDNN_ATTR_ENGINECFG_ENGINE);
MUSTER_SAME(AttributeName::kEngineNumericalNotes,
            CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
MUSTER_SAME(AttributeName::kEngineBehaviorNotes,
            CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE);
MUSTER_SAME(AttributeName::kPlanHandle, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
MUSTER_SAME(AttributeName::kPlanEngineConfig,
            CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
MUSTER_SAME(AttributeName::kPlanWorkspaceSize,
            CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);

MUSTER_SAME(AttributeName::kForwardAlpha,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA);
MUSTER_SAME(AttributeName::kForwardBeta,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
MUSTER_SAME(AttributeName::kForwardConvolution,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
MUSTER_SAME(AttributeName::kForwardW,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
MUSTER_SAME(AttributeName::kForwardX,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
MUSTER_SAME(AttributeName::kForwardY,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
MUSTER_SAME(AttributeName::kBackwardDataAlpha,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA);
MUSTER_SAME(AttributeName::kBackwardDataBeta,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA);
MUSTER_SAME(AttributeName::kBackwardDataConvolution,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC);
MUSTER_SAME(AttributeName::kBackwardDataW,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W);
MUSTER_SAME(AttributeName::kBackwardDataDx,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
MUSTER_SAME(AttributeName::kBackwardDataDy,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
MUSTER_SAME(AttributeName::kBackwardFilterAlpha,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA);
MUSTER_SAME(AttributeName::kBackwardFilterBeta,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA);
MUSTER_SAME(AttributeName::kBackwardFilterConvolution,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC);
MUSTER_SAME(AttributeName::kBackwardFilterDw,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
MUSTER_SAME(AttributeName::kBackwardFilterX,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X);
MUSTER_SAME(AttributeName::kBackwardFilterDy,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
MUSTER_SAME(AttributeName::kGraphHandle, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
MUSTER_SAME(AttributeName::kGraphOperations, CUDNN_ATTR_OPERATIONGRAPH_OPS);

MUSTER_SAME(AttributeName::kTensorByteAlignment,
            CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
MUSTER_SAME(AttributeName::kTensorDataType, CUDNN_ATTR_TENSOR_DATA_TYPE);
MUSTER_SAME(AttributeName::kTensorDimensions, CUDNN_ATTR_TENSOR_DIMENSIONS);
MUSTER_SAME(AttributeName::kTensorStrides, CUDNN_ATTR_TENSOR_STRIDES);
MUSTER_SAME(AttributeName::kTensorUniqueId, CUDNN_ATTR_TENSOR_UNIQUE_ID);
MUSTER_SAME(AttributeName::kTensorIsVirtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
MUSTER_SAME(AttributeName::kTensorIsByValue, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
MUSTER_SAME(AttributeName::kPackUniqueIds, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
MUSTER_SAME(AttributeName::kPackDataPointers,
            CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
MUSTER_SAME(AttributeName::kPackWorkspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);

// Descriptions of GPUs that this machine may not have.
#if CUDNN_VERSION >= 90800
MUSTER_SAME(DescriptorType::kDeviceProperties,
            CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
MUSTER_SAME(AttributeName::kHeuristicDeviceProperties,
            CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
MUSTER_SAME(AttributeName::kPlanDeviceProperties,
            CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
MUSTER_SAME(AttributeName::kDevicePropertiesJson,
            CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
#endif

#undef MUSTER_SAME

TEST(CudnnHeaderTest, VersionsAreNumberedAsTheHeaderDoes) {
  EXPECT_EQ(VersionString(CUDNN_VERSION),
            absl::StrCat(CUDNN_MAJOR, ".", CUDNN_MINOR, ".", CUDNN_PATCHLEVEL));
}

}  // namespace
}  // namespace muster::cudnn

#else

TEST(CudnnHeaderTest, VersionsAreNumberedAsTheHeaderDoes) {
  GTEST_SKIP() << "the CUDA toolkit has no cudnn_graph.h";
}

#endif
