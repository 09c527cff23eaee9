#ifndef COMMON_COMPUTE_KERNELS_CUDA_CUDNN_ATTENTION_GRAPH_H_
#define COMMON_COMPUTE_KERNELS_CUDA_CUDNN_ATTENTION_GRAPH_H_

#include "absl/status/statusor.h"
#include "common/compute/kernels/cuda/cudnn/attention_plan.h"
#include "common/compute/kernels/cuda/cudnn/execution_plan.h"

namespace muster::internal {

// Returns the graph of operations that cuDNN's engines recognize as attention,
// with the operands of MakeCudnnPlan().
//   errors  as CudnnStatus()
absl::StatusOr<CudnnGraph> MakeAttentionGraph(const CudnnTarget& target,
                                              const AttentionProblem& problem);

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CUDA_CUDNN_ATTENTION_GRAPH_H_
