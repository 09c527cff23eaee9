#ifndef COMMON_COMPUTE_KERNELS_CUDA_CUDNN_CONVOLUTION_GRAPH_H_
#define COMMON_COMPUTE_KERNELS_CUDA_CUDNN_CONVOLUTION_GRAPH_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/compute/kernels/cuda/cudnn/convolution_plan.h"
#include "common/compute/kernels/cuda/cudnn/descriptor.h"

namespace muster::internal {

// Returns the finalized descriptors of a graph of one operation. The last one
// is the graph; the others are those to which it refers.
//   errors  as CudnnStatus()
absl::StatusOr<std::vector<CudnnDescriptor>> MakeConvolutionGraph(
    const CudnnTarget& target, const ConvolutionProblem& problem);

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CUDA_CUDNN_CONVOLUTION_GRAPH_H_
