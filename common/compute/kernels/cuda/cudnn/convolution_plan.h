#ifndef COMMON_COMPUTE_KERNELS_CUDA_CUDNN_CONVOLUTION_PLAN_H_
#define COMMON_COMPUTE_KERNELS_CUDA_CUDNN_CONVOLUTION_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/kernels/cuda/cudnn/cudnn_api.h"
#include "common/compute/kernels/cuda/cudnn/descriptor.h"
#include "common/compute/kernels/image_geometry.h"
#include "common/core/tensor/dtype.h"

namespace muster {

// A convolution or one of its gradients. Images are [batch, height, width,
// channels], kernels [outputs, height, width, inputs of a group], in row order.
// cuDNN takes no other layout of kernels with such images: it does not look at
// the strides of a kernel, and computes something else.
struct ConvolutionProblem {
  DType dtype = DType::kFloat32;  // Of all operands; a floating type.
  internal::ConvGeometry geometry;
  // True if float32 operands may be rounded to TF32.
  bool tensor_float_32 = false;
};

// Returns a text that no other problem has.
std::string Describe(const ConvolutionProblem& problem);

// The GPU that plans are for.
struct CudnnTarget {
  const cudnn::CudnnApi* api = nullptr;
  // Of a GPU of this process.
  cudnn::Handle* handle = nullptr;
  // Without a handle: of a GPU that need not exist.
  const CudnnDescriptor* device_properties = nullptr;
};

// The unique ids of the operands of a plan.
inline constexpr int64_t kCudnnX = 'x';
inline constexpr int64_t kCudnnKernel = 'w';
inline constexpr int64_t kCudnnY = 'y';

// An execution plan, with the engine that it runs. The descriptors to which it
// refers live as long as it.
class ConvolutionPlan {
 public:
  // Addresses of operands and of the workspace are multiples of this.
  static constexpr int64_t kAlignmentBytes = 16;

  // Takes the first engine of cuDNN's heuristics whose results are reproducible
  // and not less precise than the problem allows. One that has to be compiled
  // when the plan is made, which takes seconds, is taken if there is no other.
  //   kUnimplemented  there is no such engine
  //   others          as CudnnStatus()
  static absl::StatusOr<ConvolutionPlan> Create(
      const CudnnTarget& target, const ConvolutionProblem& problem);

  const CudnnDescriptor& plan() const { return plan_; }
  size_t workspace_bytes() const { return workspace_bytes_; }
  // True if the engine was compiled for this plan.
  bool was_compiled() const { return was_compiled_; }

 private:
  ConvolutionPlan(std::vector<CudnnDescriptor> graph, CudnnDescriptor plan,
                  size_t workspace_bytes, bool was_compiled)
      : graph_(std::move(graph)),
        plan_(std::move(plan)),
        workspace_bytes_(workspace_bytes),
        was_compiled_(was_compiled) {}

  std::vector<CudnnDescriptor> graph_;
  CudnnDescriptor plan_;
  size_t workspace_bytes_;
  bool was_compiled_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CUDA_CUDNN_CONVOLUTION_PLAN_H_
