#ifndef COMMON_COMPUTE_RUNTIME_ATTENTION_FUSION_H_
#define COMMON_COMPUTE_RUNTIME_ATTENTION_FUSION_H_

#include "absl/functional/function_ref.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/kernels/kernel.h"

namespace muster {

// Rewrites a typed graph so that scaled dot-product attention becomes one op,
// kFusedAttentionOp, and its gradient another, kFusedAttentionGradOp, if the
// device supports them. Scores are then never stored in memory. Layers trace
// attention in this form, in which x is one of q, k and v:
//   x_heads = Transpose(x, {0, 2, 1, 3}), [batch, heads, time, features]
//   p = Softmax(MatMul(Mul(q_heads, scale), k_heads'))
//   o = Transpose(MatMul(p, v_heads), {0, 2, 1, 3})
// Operands of rank 3 have no heads and no Transpose. Without a Mul the scale is
// 1. Casts may convert the scores to float32 and p back. The new ops read x and
// write o, so the Transposes are removed, too.
//
// A mask is Select(mask, scores, fill) before the softmax, with a constant fill
// of at most -1e4, and its gradient Select(mask, gradient, 0). It becomes a
// bias or, if it is a constant that is true at and before the diagonal, an
// attribute. As without fusion, a query whose keys are all masked attends to
// all of them equally and gets no gradient.
//
// Attention is not fused if another node or the model's result reads the scores
// or p (a dropout, for example), or if only some of the three gradients exist.
// Dead nodes are dropped.
void FuseAttention(Graph* typed_graph, const OpRegistry& ops,
                   absl::FunctionRef<bool(const KernelSpec&)> is_supported);

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_ATTENTION_FUSION_H_
