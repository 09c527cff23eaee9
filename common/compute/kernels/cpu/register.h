#ifndef COMMON_COMPUTE_KERNELS_CPU_REGISTER_H_
#define COMMON_COMPUTE_KERNELS_CPU_REGISTER_H_

#include "common/compute/kernels/kernel.h"

// The families of CPU kernels; CpuKernels() calls each once. Each stands before
// the reference kernels and answers kUnimplemented for types that it has no
// fast way for.
namespace muster::internal {

void RegisterCpuActivationKernels(KernelRegistry* registry);
void RegisterCpuArithmeticKernels(KernelRegistry* registry);
// Of all ops that are registered by then. Keeps the registry for as long as it
// makes kernels.
void RegisterCpuBfloat16Kernels(KernelRegistry* registry);
void RegisterCpuImageKernels(KernelRegistry* registry);
void RegisterCpuConvKernels(KernelRegistry* registry);
void RegisterCpuConvWeightKernels(KernelRegistry* registry);
void RegisterCpuMatMulKernels(KernelRegistry* registry);
void RegisterCpuNormalizationKernels(KernelRegistry* registry);
void RegisterCpuPoolKernels(KernelRegistry* registry);
void RegisterCpuRandomKernels(KernelRegistry* registry);
void RegisterCpuReductionKernels(KernelRegistry* registry);
void RegisterCpuRowKernels(KernelRegistry* registry);
void RegisterCpuSoftmaxKernels(KernelRegistry* registry);
void RegisterCpuTransposeKernels(KernelRegistry* registry);

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CPU_REGISTER_H_
