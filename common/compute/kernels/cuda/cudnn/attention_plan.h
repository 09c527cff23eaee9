#ifndef COMMON_COMPUTE_KERNELS_CUDA_CUDNN_ATTENTION_PLAN_H_
#define COMMON_COMPUTE_KERNELS_CUDA_CUDNN_ATTENTION_PLAN_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/compute/kernels/attention.h"
#include "common/compute/kernels/cuda/cudnn/execution_plan.h"
#include "common/core/tensor/dtype.h"

namespace muster {

// FusedAttention or FusedAttentionGrad: common/compute/kernels/attention.h.
struct AttentionProblem {
  DType dtype = DType::kBfloat16;  // Of all operands but the statistics.
  AttentionGeometry geometry;
  double scale = 1;
  bool is_causal = false;
  bool is_gradient = false;
};

// Returns a text that identifies the problem.
std::string Describe(const AttentionProblem& problem);

// Returns a plan whose operands are q, k, v, o and the statistics, or for a
// gradient do, q, k, v, o, the statistics, dq, dk, dv, and memory for
// float32[batch, heads, time]. If there is a bias, it is the last operand.
//   kUnimplemented  cuDNN does not support the problem, or this version of it
//                   is known to compute wrong results
//   others          as CudnnPlan::Create()
absl::StatusOr<CudnnPlan> MakeCudnnPlan(const CudnnTarget& target,
                                        const AttentionProblem& problem);

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CUDA_CUDNN_ATTENTION_PLAN_H_
