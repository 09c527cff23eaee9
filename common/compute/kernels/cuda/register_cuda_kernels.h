#ifndef COMMON_COMPUTE_KERNELS_CUDA_REGISTER_CUDA_KERNELS_H_
#define COMMON_COMPUTE_KERNELS_CUDA_REGISTER_CUDA_KERNELS_H_

#include <functional>
#include <memory>

#include "common/compute/kernels/cuda/device_code/kernel_parameters.h"
#include "common/compute/kernels/cuda/launch.h"
#include "common/compute/kernels/kernel.h"

// Registration of the families of device kernels.
namespace muster {

class CublasLt;
class Cudnn;

namespace internal {

void RegisterCopyKernels(KernelRegistry* registry, const KernelTarget& target);
void RegisterElementwiseKernels(KernelRegistry* registry,
                                const KernelTarget& target);
void RegisterImageKernels(KernelRegistry* registry, const KernelTarget& target);
void RegisterLayerNormKernels(KernelRegistry* registry,
                              const KernelTarget& target);
void RegisterMatMulKernels(KernelRegistry* registry,
                           const KernelTarget& target);
void RegisterRandomKernels(KernelRegistry* registry,
                           const KernelTarget& target);
void RegisterReductionKernels(KernelRegistry* registry,
                              const KernelTarget& target);
void RegisterRecurrenceKernels(KernelRegistry* registry,
                               const KernelTarget& target);
void RegisterRowKernels(KernelRegistry* registry, const KernelTarget& target);
void RegisterSortKernels(KernelRegistry* registry, const KernelTarget& target);

// Registered after the others, so these kernels are tried first. Requires that
// `target` has a device.
void RegisterCublasLtKernels(KernelRegistry* registry,
                             const KernelTarget& target,
                             const std::shared_ptr<CublasLt>& library);
void RegisterCudnnKernels(KernelRegistry* registry, const KernelTarget& target,
                          const std::shared_ptr<Cudnn>& library);
void RegisterCudnnAttentionKernels(KernelRegistry* registry,
                                   const KernelTarget& target,
                                   const std::shared_ptr<Cudnn>& library);
// Registered after cuDNN, which computes what these kernels do not support:
// depthwise convolutions of several outputs for each channel, dilated ones, and
// float64.
void RegisterDepthwiseKernels(KernelRegistry* registry,
                              const KernelTarget& target);

// Sets all elements of output 0 to `value`.
absl::StatusOr<std::function<absl::Status(const DeviceRun&)>> Filling(
    const KernelTarget& target, const KernelSpec& spec, double value);

// Converts `count` elements as the op Cast, computed in float.
using Conversion = std::function<absl::Status(
    const DeviceRun&, int64_t count, DeviceElements from, DeviceElements to)>;
absl::StatusOr<Conversion> Converting(const KernelTarget& target);

// Copies words as the parameters specify.
using WordCopy =
    std::function<absl::Status(const DeviceRun&, const CopyParameters&)>;
absl::StatusOr<WordCopy> CopyingWords(const KernelTarget& target);

}  // namespace internal
}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CUDA_REGISTER_CUDA_KERNELS_H_
