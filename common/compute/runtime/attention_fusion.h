#ifndef COMMON_COMPUTE_RUNTIME_ATTENTION_FUSION_H_
#define COMMON_COMPUTE_RUNTIME_ATTENTION_FUSION_H_

#include "absl/functional/function_ref.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/kernels/kernel.h"

namespace muster {

// Rewrites a typed graph so that scaled dot-product attention is one op,
// kFusedAttentionOp, and its gradient another, kFusedAttentionGradOp, where the
// device supports them: scores are then in no memory. In the form in which
// layers trace it, x is one of q, k and v:
//   x_heads = Transpose(x, {0, 2, 1, 3}), [batch, heads, time, features]
//   p = Softmax(MatMul(Mul(q_heads, scale), k_heads'))
//   o = Transpose(MatMul(p, v_heads), {0, 2, 1, 3})
// Operands of rank 3 have no heads and no Transpose; without a Mul the scale is
// 1; Casts may convert the scores to float32 and p back. The new ops read and
// write x and o, so the Transposes are left out, too.
//
// A mask is Select(mask, scores, fill) before the softmax, with a constant fill
// of at most -1e4, and its gradient Select(mask, gradient, 0). It becomes a
// bias or, if it is a constant that is true at and before the diagonal, an
// attribute. As before, a query whose keys are all masked attends to all of
// them alike, and gets no gradient.
//
// Attention stays as it is if anything else reads the scores or p, such as a
// dropout, or the model's result, or if only some of the three gradients are
// there. Nodes that nothing reads any more are dropped.
void FuseAttention(Graph* typed_graph, const OpRegistry& ops,
                   absl::FunctionRef<bool(const KernelSpec&)> is_supported);

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_ATTENTION_FUSION_H_
