#ifndef COMMON_COMPUTE_OPS_REGISTER_OPS_H_
#define COMMON_COMPUTE_OPS_REGISTER_OPS_H_

#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "common/compute/graph/op_registry.h"

// Registration of the families of ops. BuiltinOps() calls each function once.
// Each is defined beside the functions that build the nodes.
namespace muster::internal {

// Returns the schema of an elementwise op.
inline OpSchema ElementwiseOp(absl::string_view name, int input_count,
                              OpSchema::TypeRule type_rule,
                              OpSchema::GradientRule gradient_rule = nullptr,
                              OpSamples samples = {}) {
  return {.name = std::string(name),
          .input_count_min = input_count,
          .input_count_max = input_count,
          .type_rule = type_rule,
          .gradient_rule = gradient_rule,
          .is_elementwise = true,
          .samples = std::move(samples)};
}

void RegisterActivationOps(OpRegistry* registry);
void RegisterArithmeticOps(OpRegistry* registry);
void RegisterCheckOps(OpRegistry* registry);
void RegisterComparisonOps(OpRegistry* registry);
void RegisterControlFlowOps(OpRegistry* registry);
void RegisterControlOps(OpRegistry* registry);
void RegisterConvOps(OpRegistry* registry);
void RegisterCumulativeOps(OpRegistry* registry);
void RegisterImageOps(OpRegistry* registry);
void RegisterIndexOps(OpRegistry* registry);
void RegisterLossOps(OpRegistry* registry);
void RegisterMathOps(OpRegistry* registry);
void RegisterMatMulOps(OpRegistry* registry);
void RegisterNormalizationOps(OpRegistry* registry);
void RegisterPoolOps(OpRegistry* registry);
void RegisterProgramOps(OpRegistry* registry);
void RegisterRandomOps(OpRegistry* registry);
void RegisterRecurrenceOps(OpRegistry* registry);
void RegisterReductionOps(OpRegistry* registry);
void RegisterReplicaOps(OpRegistry* registry);
void RegisterShapeOps(OpRegistry* registry);
void RegisterSliceOps(OpRegistry* registry);
void RegisterSortOps(OpRegistry* registry);
void RegisterStringOps(OpRegistry* registry);
void RegisterVariableOps(OpRegistry* registry);

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_OPS_REGISTER_OPS_H_
