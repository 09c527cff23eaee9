#ifndef COMMON_COMPUTE_OPS_REGISTER_H_
#define COMMON_COMPUTE_OPS_REGISTER_H_

#include "common/compute/graph/op_registry.h"

// The families of ops; BuiltinOps() calls each once. Defined beside the
// functions that build the nodes.
namespace muster::internal {

void RegisterActivationOps(OpRegistry* registry);
void RegisterArithmeticOps(OpRegistry* registry);
void RegisterComparisonOps(OpRegistry* registry);
void RegisterControlOps(OpRegistry* registry);
void RegisterConvOps(OpRegistry* registry);
void RegisterImageOps(OpRegistry* registry);
void RegisterIndexOps(OpRegistry* registry);
void RegisterLossOps(OpRegistry* registry);
void RegisterMathOps(OpRegistry* registry);
void RegisterMatMulOps(OpRegistry* registry);
void RegisterNormalizationOps(OpRegistry* registry);
void RegisterPoolOps(OpRegistry* registry);
void RegisterRandomOps(OpRegistry* registry);
void RegisterReductionOps(OpRegistry* registry);
void RegisterReplicaOps(OpRegistry* registry);
void RegisterShapeOps(OpRegistry* registry);
void RegisterSliceOps(OpRegistry* registry);
void RegisterVariableOps(OpRegistry* registry);

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_OPS_REGISTER_H_
