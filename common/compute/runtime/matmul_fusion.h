#ifndef COMMON_COMPUTE_RUNTIME_MATMUL_FUSION_H_
#define COMMON_COMPUTE_RUNTIME_MATMUL_FUSION_H_

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph.h"
#include "common/compute/kernels/kernel.h"

namespace muster {

// MatMul, Add of a row vector, and an activation as one op:
//   FusedMatMulBias{transpose_a, transpose_b, activation}(a, b, bias)
// where activation is "" or one of Relu, Relu6, Tanh, Sigmoid, Gelu (exact) and
// GeluTanh. Only kernels know this op.
inline constexpr absl::string_view kFusedMatMulBiasOp = "FusedMatMulBias";

// Fuses in a typed graph wherever nobody else reads what lies between and the
// device supports the outcome. The nodes fused away are left dead.
void FuseMatMulBias(Graph* typed_graph,
                    absl::FunctionRef<bool(const KernelSpec&)> is_supported);

// The gradient of a relu asks where its input was positive, which is where its
// output is. Lets it ask the output, so that nobody but the relu reads what it
// was made from: then FuseMatMulBias() takes the relu along. In a typed graph.
void ReadReluOutputs(Graph* typed_graph);

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_MATMUL_FUSION_H_
