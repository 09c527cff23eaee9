#ifndef COMMON_COMPUTE_RUNTIME_MATMUL_FUSION_H_
#define COMMON_COMPUTE_RUNTIME_MATMUL_FUSION_H_

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/kernels/kernel.h"

namespace muster {

// MatMul, Add of a row vector, and an activation as one op:
//   FusedMatMulBias{transpose_a, transpose_b, activation}(a, b, bias)
// where activation is "" or what OpSchema::activation_name() of its op returns.
// This op exists only in kernels.
inline constexpr absl::string_view kFusedMatMulBiasOp = "FusedMatMulBias";

// Fuses these ops in a typed graph if no other node reads the intermediate
// values and the device supports the result. Fused nodes are left dead.
void FuseMatMulBias(Graph* typed_graph, const OpRegistry& ops,
                    absl::FunctionRef<bool(const KernelSpec&)> is_supported);

// The gradient of a relu depends on where its input was positive, which is
// where its output is positive (OpSchema::gradient_by_either). This rewrite
// makes the gradient read the output, so that only the relu reads the input:
// FuseMatMulBias() can then fuse the relu. In a typed graph.
void ReadReluOutputs(Graph* typed_graph, const OpRegistry& ops);

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_MATMUL_FUSION_H_
