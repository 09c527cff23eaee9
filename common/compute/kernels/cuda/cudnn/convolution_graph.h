#ifndef COMMON_COMPUTE_KERNELS_CUDA_CUDNN_CONVOLUTION_GRAPH_H_
#define COMMON_COMPUTE_KERNELS_CUDA_CUDNN_CONVOLUTION_GRAPH_H_

#include "absl/status/statusor.h"
#include "common/compute/kernels/cuda/cudnn/convolution_plan.h"
#include "common/compute/kernels/cuda/cudnn/execution_plan.h"

namespace muster::internal {

// Returns a graph of one operation, with the operands of MakeCudnnPlan().
//   errors  as CudnnStatus()
absl::StatusOr<CudnnGraph> MakeConvolutionGraph(
    const CudnnTarget& target, const ConvolutionProblem& problem);

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CUDA_CUDNN_CONVOLUTION_GRAPH_H_
