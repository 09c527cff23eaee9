#ifndef COMMON_COMPUTE_KERNELS_CPU_REGISTER_CPU_KERNELS_H_
#define COMMON_COMPUTE_KERNELS_CPU_REGISTER_CPU_KERNELS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/compute/kernels/kernel.h"

// Registration of the families of CPU kernels. CpuKernels() calls each function
// once. CPU kernels have priority over the reference kernels and return
// kUnimplemented for types that they do not support.
namespace muster::internal {

using KernelOr = absl::StatusOr<std::unique_ptr<Kernel>>;

void RegisterCpuActivationKernels(KernelRegistry* registry);
void RegisterCpuArithmeticKernels(KernelRegistry* registry);
// Registers kernels for all ops that are registered before the call. Keeps a
// pointer to the registry.
void RegisterCpuLowPrecisionKernels(KernelRegistry* registry);
void RegisterCpuImageKernels(KernelRegistry* registry);
void RegisterCpuConvKernels(KernelRegistry* registry);
void RegisterCpuConvWeightKernels(KernelRegistry* registry);
void RegisterCpuLayerNormKernels(KernelRegistry* registry);
void RegisterCpuMatMulKernels(KernelRegistry* registry);
void RegisterCpuNormalizationKernels(KernelRegistry* registry);
void RegisterCpuPoolKernels(KernelRegistry* registry);
void RegisterCpuRandomKernels(KernelRegistry* registry);
void RegisterCpuRecurrenceKernels(KernelRegistry* registry);
void RegisterCpuReductionKernels(KernelRegistry* registry);
void RegisterCpuRowKernels(KernelRegistry* registry);
void RegisterCpuSoftmaxKernels(KernelRegistry* registry);
void RegisterCpuTransposeKernels(KernelRegistry* registry);

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CPU_REGISTER_CPU_KERNELS_H_
