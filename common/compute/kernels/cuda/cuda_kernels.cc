#include "common/compute/kernels/cuda/cuda_kernels.h"

#include "common/compute/kernels/cuda/launch.h"
#include "common/compute/kernels/cuda/register.h"

namespace muster {
namespace {

KernelRegistry KernelsOf(const internal::KernelTarget& target) {
  KernelRegistry registry;
  internal::RegisterCopyKernels(&registry, target);
  internal::RegisterElementwiseKernels(&registry, target);
  internal::RegisterImageKernels(&registry, target);
  internal::RegisterMatMulKernels(&registry, target);
  internal::RegisterRandomKernels(&registry, target);
  internal::RegisterReductionKernels(&registry, target);
  internal::RegisterRecurrenceKernels(&registry, target);
  internal::RegisterRowKernels(&registry, target);
  internal::RegisterSortKernels(&registry, target);
  return registry;
}

}  // namespace

KernelRegistry CudaKernels(Device* device) {
  return KernelsOf({.device = device});
}

KernelRegistry SimulatedCudaKernels(uint64_t seed) {
  return KernelsOf({.simulated_seed = seed});
}

}  // namespace muster
