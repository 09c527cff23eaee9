#include "common/compute/kernels/reference/reference_kernels.h"

#include "common/compute/kernels/reference/register_reference_kernels.h"

namespace muster {

const KernelRegistry& ReferenceKernels() {
  static const KernelRegistry* const kRegistry = [] {
    auto* registry = new KernelRegistry;
    internal::RegisterActivationKernels(registry);
    internal::RegisterBinaryKernels(registry);
    internal::RegisterImageKernels(registry);
    internal::RegisterCheckKernels(registry);
    internal::RegisterControlFlowKernels(registry);
    internal::RegisterConvKernels(registry);
    internal::RegisterIndexKernels(registry);
    internal::RegisterLossKernels(registry);
    internal::RegisterMatMulKernels(registry);
    internal::RegisterNormalizationKernels(registry);
    internal::RegisterPoolKernels(registry);
    internal::RegisterRandomKernels(registry);
    internal::RegisterRecurrenceKernels(registry);
    internal::RegisterReductionKernels(registry);
    internal::RegisterReplicaKernels(registry);
    internal::RegisterShapeKernels(registry);
    internal::RegisterSortKernels(registry);
    internal::RegisterStringKernels(registry);
    internal::RegisterUnaryKernels(registry);
    return registry;
  }();
  return *kRegistry;
}

}  // namespace muster
