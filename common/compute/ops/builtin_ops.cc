#include "common/compute/ops/builtin_ops.h"

#include "common/compute/ops/register_ops.h"

namespace muster {

const OpRegistry& BuiltinOps() {
  static const OpRegistry* const kRegistry = [] {
    auto* registry = new OpRegistry;
    internal::RegisterActivationOps(registry);
    internal::RegisterArithmeticOps(registry);
    internal::RegisterCheckOps(registry);
    internal::RegisterComparisonOps(registry);
    internal::RegisterControlFlowOps(registry);
    internal::RegisterControlOps(registry);
    internal::RegisterCumulativeOps(registry);
    internal::RegisterImageOps(registry);
    internal::RegisterConvOps(registry);
    internal::RegisterIndexOps(registry);
    internal::RegisterLossOps(registry);
    internal::RegisterMathOps(registry);
    internal::RegisterMatMulOps(registry);
    internal::RegisterNormalizationOps(registry);
    internal::RegisterPoolOps(registry);
    internal::RegisterProgramOps(registry);
    internal::RegisterRandomOps(registry);
    internal::RegisterRecurrenceOps(registry);
    internal::RegisterReductionOps(registry);
    internal::RegisterReplicaOps(registry);
    internal::RegisterShapeOps(registry);
    internal::RegisterSliceOps(registry);
    internal::RegisterSortOps(registry);
    internal::RegisterStringOps(registry);
    internal::RegisterVariableOps(registry);
    return registry;
  }();
  return *kRegistry;
}

}  // namespace muster
