#ifndef COMMON_COMPUTE_KERNELS_CUDA_CUDNN_CONVOLUTION_PLAN_H_
#define COMMON_COMPUTE_KERNELS_CUDA_CUDNN_CONVOLUTION_PLAN_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/compute/kernels/cuda/cudnn/execution_plan.h"
#include "common/compute/kernels/image_geometry.h"
#include "common/core/tensor/dtype.h"

namespace muster {

// A convolution or one of its gradients. Images are [batch, height, width,
// channels], kernels [outputs, height, width, inputs of a group], in row order.
// cuDNN supports no other layout of kernels with such images: it ignores the
// strides of a kernel and computes wrong results.
struct ConvolutionProblem {
  DType dtype = DType::kFloat32;  // Of all operands; a floating type.
  internal::ConvGeometry geometry;
  // True if float32 operands may be rounded to TF32.
  bool tensor_float_32 = false;
};

// Returns a text that identifies the problem.
std::string Describe(const ConvolutionProblem& problem);

// Returns a plan whose operands are x, the kernel and y. The plan of a gradient
// writes x or the kernel.
//   errors  as CudnnPlan::Create()
absl::StatusOr<CudnnPlan> MakeCudnnPlan(const CudnnTarget& target,
                                        const ConvolutionProblem& problem);

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CUDA_CUDNN_CONVOLUTION_PLAN_H_
