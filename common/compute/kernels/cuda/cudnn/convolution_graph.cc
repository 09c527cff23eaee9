#include "common/compute/kernels/cuda/cudnn/convolution_graph.h"

#include <cstdint>
#include <utility>

#include "common/compute/kernels/image_geometry.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/window.h"

namespace muster::internal {
namespace {

using cudnn::AttributeName;
using cudnn::DescriptorType;

// Axes are in cuDNN's order: batch, channels, height, width. For kernels it is
// outputs, inputs of a group, height, width.

// The unique ids of the operands.
constexpr int64_t kX = 'x';
constexpr int64_t kKernel = 'w';
constexpr int64_t kY = 'y';

absl::StatusOr<CudnnDescriptor> MakeTensor(const CudnnTarget& target,
                                           DType dtype, int64_t id,
                                           const CudnnAxes& extents,
                                           const CudnnAxes& strides) {
  ASSIGN_OR_RETURN(
      CudnnDescriptor tensor,
      CudnnDescriptor::Create(target.api, DescriptorType::kTensor));
  tensor.Set(AttributeName::kTensorDataType, CudnnDataTypeOf(dtype));
  tensor.SetList<int64_t>(AttributeName::kTensorDimensions, extents);
  tensor.SetList<int64_t>(AttributeName::kTensorStrides, strides);
  tensor.Set(AttributeName::kTensorUniqueId, id);
  tensor.Set(AttributeName::kTensorByteAlignment, CudnnPlan::kAlignmentBytes);
  RETURN_IF_ERROR(tensor.Finalize());
  return tensor;
}

absl::StatusOr<CudnnDescriptor> MakeImages(const CudnnTarget& target,
                                           DType dtype, int64_t id,
                                           int64_t batch, int64_t height,
                                           int64_t width, int64_t channels) {
  return MakeTensor(target, dtype, id, {batch, channels, height, width},
                    {height * width * channels, 1, width * channels, channels});
}

absl::StatusOr<CudnnDescriptor> MakeKernel(const CudnnTarget& target,
                                           DType dtype,
                                           const ConvGeometry& geometry) {
  const int64_t outputs = geometry.output_channels;
  const int64_t inputs = geometry.group_inputs();
  const int64_t height = geometry.height.window_extent;
  const int64_t width = geometry.width.window_extent;
  return MakeTensor(target, dtype, kKernel, {outputs, inputs, height, width},
                    {height * width * inputs, 1, width * inputs, inputs});
}

absl::StatusOr<CudnnDescriptor> MakeConvolution(const CudnnTarget& target,
                                                DType dtype,
                                                const ConvGeometry& geometry) {
  ASSIGN_OR_RETURN(
      CudnnDescriptor convolution,
      CudnnDescriptor::Create(target.api, DescriptorType::kConvolution));
  const auto set = [&](AttributeName attribute, int64_t WindowAxis::*field) {
    const int64_t values[] = {geometry.height.*field, geometry.width.*field};
    convolution.SetList<int64_t>(attribute, values);
  };
  convolution.Set(AttributeName::kConvolutionComputeType,
                  CudnnDataTypeOf(dtype == DType::kFloat64 ? DType::kFloat64
                                                           : DType::kFloat32));
  convolution.Set(AttributeName::kConvolutionMode,
                  cudnn::ConvolutionMode::kCrossCorrelation);
  convolution.Set(AttributeName::kConvolutionSpatialDimensions, int64_t{2});
  set(AttributeName::kConvolutionPrePaddings, &WindowAxis::padding_before);
  set(AttributeName::kConvolutionPostPaddings, &WindowAxis::padding_after);
  set(AttributeName::kConvolutionStrides, &WindowAxis::stride);
  set(AttributeName::kConvolutionDilations, &WindowAxis::dilation);
  RETURN_IF_ERROR(convolution.Finalize());
  return convolution;
}

// The names of the same attributes in the three operations.
struct OperationNames {
  DescriptorType type;
  AttributeName alpha, beta, convolution, x, kernel, y;
};

OperationNames NamesOf(ConvPart part) {
  switch (part) {
    case ConvPart::kForward:
      return {DescriptorType::kConvolutionForward,
              AttributeName::kForwardAlpha,
              AttributeName::kForwardBeta,
              AttributeName::kForwardConvolution,
              AttributeName::kForwardX,
              AttributeName::kForwardW,
              AttributeName::kForwardY};
    case ConvPart::kBackpropInput:
      return {DescriptorType::kConvolutionBackwardData,
              AttributeName::kBackwardDataAlpha,
              AttributeName::kBackwardDataBeta,
              AttributeName::kBackwardDataConvolution,
              AttributeName::kBackwardDataDx,
              AttributeName::kBackwardDataW,
              AttributeName::kBackwardDataDy};
    case ConvPart::kBackpropKernel:
      break;
  }
  return {DescriptorType::kConvolutionBackwardFilter,
          AttributeName::kBackwardFilterAlpha,
          AttributeName::kBackwardFilterBeta,
          AttributeName::kBackwardFilterConvolution,
          AttributeName::kBackwardFilterX,
          AttributeName::kBackwardFilterDw,
          AttributeName::kBackwardFilterDy};
}

// Sets the factors of the result and of the values to which it is added.
template <typename T>
void SetFactors(const OperationNames& names, CudnnDescriptor* operation) {
  operation->Set(names.alpha, T{1});
  operation->Set(names.beta, T{0});
}

}  // namespace

absl::StatusOr<CudnnGraph> MakeConvolutionGraph(
    const CudnnTarget& target, const ConvolutionProblem& problem) {
  const ConvGeometry& geometry = problem.geometry;
  const DType dtype = problem.dtype;
  ASSIGN_OR_RETURN(
      CudnnDescriptor x,
      MakeImages(target, dtype, kX, geometry.batch,
                 geometry.height.input_extent, geometry.width.input_extent,
                 geometry.input_channels));
  ASSIGN_OR_RETURN(CudnnDescriptor kernel, MakeKernel(target, dtype, geometry));
  ASSIGN_OR_RETURN(
      CudnnDescriptor y,
      MakeImages(target, dtype, kY, geometry.batch,
                 geometry.height.output_extent, geometry.width.output_extent,
                 geometry.output_channels));
  ASSIGN_OR_RETURN(CudnnDescriptor convolution,
                   MakeConvolution(target, dtype, geometry));
  const OperationNames names = NamesOf(geometry.part);
  ASSIGN_OR_RETURN(CudnnDescriptor operation,
                   CudnnDescriptor::Create(target.api, names.type));
  if (dtype == DType::kFloat64) {
    SetFactors<double>(names, &operation);
  } else {
    SetFactors<float>(names, &operation);
  }
  operation.Set(names.convolution, convolution);
  operation.Set(names.x, x);
  operation.Set(names.kernel, kernel);
  operation.Set(names.y, y);
  RETURN_IF_ERROR(operation.Finalize());
  CudnnGraph graph;
  graph.operand_ids = {kX, kKernel, kY};
  const cudnn::Descriptor operations[] = {operation.handle()};
  for (CudnnDescriptor* one : {&x, &kernel, &y, &convolution, &operation}) {
    graph.descriptors.push_back(std::move(*one));
  }
  RETURN_IF_ERROR(FinishCudnnGraph(target, operations, &graph.descriptors));
  return graph;
}

}  // namespace muster::internal
