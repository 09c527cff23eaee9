#ifndef COMMON_COMPUTE_RUNTIME_IMAGE_FUSION_H_
#define COMMON_COMPUTE_RUNTIME_IMAGE_FUSION_H_

#include "absl/functional/function_ref.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/kernels/kernel.h"

namespace muster {

// Rewrites a typed graph so that it makes fewer passes over images. The new ops
// exist only in kernels (common/compute/kernels/cpu). Nodes fused away are left
// dead.

// Moves the zeros of a Pad into the convolution after it, forward and backward.
void FoldPadding(Graph* typed_graph);

// Fuses the following if no other node reads the intermediate values and the
// device supports the result:
//   convolution, BatchNormInference or Add of one number for each channel, and
//   Relu or Relu6            as FusedConv2D or FusedDepthwiseConv2D
//   BatchNormInference and Relu or Relu6          as FusedBatchNormInference
//   BatchNormTraining and Relu or Relu6           as FusedBatchNormTraining
//   the gradients of these two                    as FusedBatchNormTrainingGrad
//   convolution and BatchNormTraining, fused or not, as Conv2DMoments or
//   DepthwiseConv2DMoments and BatchNormInference
// Call it after ReadReluOutputs().
void FuseImageOps(Graph* typed_graph, const OpRegistry& ops,
                  absl::FunctionRef<bool(const KernelSpec&)> is_supported);

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_IMAGE_FUSION_H_
