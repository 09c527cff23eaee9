#include "common/compute/kernels/cpu/cpu_kernels.h"

#include "common/compute/kernels/cpu/register_cpu_kernels.h"
#include "common/compute/kernels/programs/program_kernel.h"
#include "common/compute/kernels/reference/reference_kernels.h"

namespace muster {
namespace {

KernelRegistry* MakeCpuKernels() {
  auto* const registry = new KernelRegistry(ReferenceKernels());
  // Registered first so that other kernels have priority: later registrations
  // are tried first.
  internal::RegisterCpuLowPrecisionKernels(registry);
  internal::RegisterCpuActivationKernels(registry);
  internal::RegisterCpuArithmeticKernels(registry);
  internal::RegisterCpuImageKernels(registry);
  internal::RegisterCpuConvKernels(registry);
  internal::RegisterCpuConvWeightKernels(registry);
  internal::RegisterCpuLayerNormKernels(registry);
  internal::RegisterCpuMatMulKernels(registry);
  internal::RegisterCpuNormalizationKernels(registry);
  internal::RegisterCpuPoolKernels(registry);
  internal::RegisterCpuRandomKernels(registry);
  internal::RegisterCpuRecurrenceKernels(registry);
  internal::RegisterCpuReductionKernels(registry);
  internal::RegisterCpuRowKernels(registry);
  internal::RegisterCpuSoftmaxKernels(registry);
  internal::RegisterCpuTransposeKernels(registry);
  internal::RegisterProgramKernels(registry);
  return registry;
}

}  // namespace

const KernelRegistry& CpuKernels() {
  static const KernelRegistry* const kRegistry = MakeCpuKernels();
  return *kRegistry;
}

}  // namespace muster
