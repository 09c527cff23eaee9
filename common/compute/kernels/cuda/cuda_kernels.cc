#include "common/compute/kernels/cuda/cuda_kernels.h"

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/compute/kernels/cuda/cublas_lt/cublas_lt.h"
#include "common/compute/kernels/cuda/cudnn/cudnn.h"
#include "common/compute/kernels/cuda/launch.h"
#include "common/compute/kernels/cuda/register_cuda_kernels.h"
#include "common/core/system/log.h"

namespace muster {
namespace {

KernelRegistry KernelsOf(const internal::KernelTarget& target) {
  KernelRegistry registry;
  internal::RegisterCopyKernels(&registry, target);
  internal::RegisterElementwiseKernels(&registry, target);
  internal::RegisterImageKernels(&registry, target);
  internal::RegisterLayerNormKernels(&registry, target);
  internal::RegisterMatMulKernels(&registry, target);
  internal::RegisterRandomKernels(&registry, target);
  internal::RegisterReductionKernels(&registry, target);
  internal::RegisterRecurrenceKernels(&registry, target);
  internal::RegisterRowKernels(&registry, target);
  internal::RegisterSortKernels(&registry, target);
  return registry;
}

void LogUnusable(const Device& device, absl::string_view what,
                 const absl::Status& reason) {
  LOG(WARNING) << device.name() << ": " << what
               << " run on Muster's own kernels, which are slow: "
               << reason.message();
}

}  // namespace

KernelRegistry CudaKernels(Device* device, const CudaLibraries& libraries) {
  const internal::KernelTarget target = {.device = device};
  KernelRegistry registry = KernelsOf(target);
  if (libraries.cudnn != nullptr) {
    const auto library = Cudnn::Create(libraries.cudnn, device);
    if (library.ok()) {
      internal::RegisterCudnnKernels(&registry, target, *library);
      internal::RegisterCudnnAttentionKernels(&registry, target, *library);
    } else {
      LogUnusable(*device, "convolutions", library.status());
    }
  }
  // Registered after cuDNN, so that it has priority for convolutions that are
  // products.
  if (libraries.cublas_lt != nullptr) {
    const auto library = CublasLt::Create(libraries.cublas_lt, device);
    if (library.ok()) {
      internal::RegisterCublasLtKernels(&registry, target, *library);
    } else {
      LogUnusable(*device, "products of matrices", library.status());
    }
  }
  internal::RegisterDepthwiseKernels(&registry, target);
  return registry;
}

KernelRegistry CudaKernels(Device* device) {
  return CudaKernels(device, FindCudaLibraries(*device));
}

KernelRegistry SimulatedCudaKernels(uint64_t seed) {
  internal::KernelTarget target = {.simulated_seed = seed};
  if (seed != 0) target.grouped_count_min = 1;
  KernelRegistry registry = KernelsOf(target);
  internal::RegisterDepthwiseKernels(&registry, target);
  return registry;
}

}  // namespace muster
