#ifndef COMMON_COMPUTE_KERNELS_REFERENCE_REGISTER_REFERENCE_KERNELS_H_
#define COMMON_COMPUTE_KERNELS_REFERENCE_REGISTER_REFERENCE_KERNELS_H_

#include "common/compute/kernels/kernel.h"

// Registration of the families of reference kernels. ReferenceKernels() calls
// each function once.
namespace muster::internal {

void RegisterActivationKernels(KernelRegistry* registry);
void RegisterBinaryKernels(KernelRegistry* registry);
void RegisterImageKernels(KernelRegistry* registry);
void RegisterCheckKernels(KernelRegistry* registry);
void RegisterControlFlowKernels(KernelRegistry* registry);
void RegisterConvKernels(KernelRegistry* registry);
void RegisterIndexKernels(KernelRegistry* registry);
void RegisterLossKernels(KernelRegistry* registry);
void RegisterMatMulKernels(KernelRegistry* registry);
void RegisterNormalizationKernels(KernelRegistry* registry);
void RegisterPoolKernels(KernelRegistry* registry);
void RegisterRandomKernels(KernelRegistry* registry);
void RegisterRecurrenceKernels(KernelRegistry* registry);
void RegisterReductionKernels(KernelRegistry* registry);
void RegisterReplicaKernels(KernelRegistry* registry);
void RegisterShapeKernels(KernelRegistry* registry);
void RegisterSortKernels(KernelRegistry* registry);
void RegisterStringKernels(KernelRegistry* registry);
void RegisterUnaryKernels(KernelRegistry* registry);

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_REFERENCE_REGISTER_REFERENCE_KERNELS_H_
