#include "common/learn/strategy/replica_devices.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/runtime/process_devices.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/device_set.h"

namespace muster {

absl::StatusOr<std::vector<std::string>> NamedOrAllDevices(
    const std::vector<std::string>& names) {
  if (!names.empty()) return names;
  const absl::StatusOr<int> count =
      DeviceSet::OfProcess().CountLogicalDevices();
  if (!count.ok() && !absl::IsUnavailable(count.status())) {
    return count.status();
  }
  std::vector<std::string> all;
  for (int i = 0; i < count.value_or(0); ++i) {
    all.push_back(absl::StrCat(kGpuKind, ":", i));
  }
  if (all.empty()) all.push_back("cpu:0");
  return all;
}

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
  options.host_kernels = &KernelsOf(nullptr);
  return Executable::Compile(step, BuiltinOps(), KernelsOf(device), variables,
                             options);
}

}  // namespace muster
