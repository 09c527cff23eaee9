#include "common/learn/strategy/replica_devices.h"

#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/kernels/cuda/cuda_kernels.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/device_set.h"

namespace muster {
namespace {

// The kernels of a device of the process, which live as long as it.
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

}  // namespace

absl::StatusOr<ReplicaDevices> FindReplicaDevices(
    absl::Span<const LogicalDevice> devices) {
  ReplicaDevices found;
  for (const LogicalDevice& device : devices) {
    found.push_back(nullptr);
    if (device.kind != kGpuKind) continue;
    ASSIGN_OR_RETURN(found.back(),
                     DeviceSet::OfProcess().FindDevice(device.index));
  }
  return found;
}

absl::StatusOr<std::unique_ptr<Executable>> CompileReplicaStep(
    const Graph& step, VariableSessionFactory* variables,
    const ReplicaDevices& devices, int replica, ExecutableOptions options) {
  Device* const device = DeviceOf(devices, replica);
  options.device = device;
  options.host_kernels = &CpuKernels();
  return Executable::Compile(step, BuiltinOps(), KernelsOf(device), variables,
                             options);
}

}  // namespace muster
