#include "common/compute/runtime/process_devices.h"

#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/kernels/cuda/cuda_kernels.h"
#include "common/core/device/device_set.h"

namespace muster {

absl::StatusOr<Device*> FindDefaultDevice() {
  const absl::StatusOr<int> count =
      DeviceSet::OfProcess().CountLogicalDevices();
  if (!count.ok() && !absl::IsUnavailable(count.status())) {
    return count.status();
  }
  if (!count.ok() || *count == 0) return nullptr;
  return DeviceSet::OfProcess().FindDevice(0);
}

const KernelRegistry& KernelsOf(Device* device) {
  if (device == nullptr) return CpuKernels();
  static absl::Mutex mutex;
  static auto* const registries =
      new absl::flat_hash_map<Device*, std::unique_ptr<KernelRegistry>>;
  const absl::MutexLock lock(&mutex);
  std::unique_ptr<KernelRegistry>& kernels = (*registries)[device];
  if (kernels == nullptr) {
    kernels = std::make_unique<KernelRegistry>(CudaKernels(device));
  }
  return *kernels;
}

}  // namespace muster
