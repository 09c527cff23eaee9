#include "common/core/device/testing/gpus_under_test.h"

#include <cstdlib>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/device.h"
#include "common/core/device/device_set.h"

namespace muster {

bool TestsUseRealGpu() {
  const char* const value = std::getenv("MUSTER_TEST_GPU");
  return value != nullptr && absl::string_view(value) == "real";
}

absl::Status UseGpusUnderTest(int count) {
  DeviceSet& devices = DeviceSet::OfProcess();
  if (!TestsUseRealGpu()) return devices.UseSimulatedDevices(count);
  ASSIGN_OR_RETURN(const std::vector<DeviceDescription> gpus,
                   devices.ListPhysicalDevices());
  RETURN_IF_ERROR(devices.SetVisibleDevices({0}));
  // The other half is for the context and for other processes.
  const size_t share_bytes = gpus[0].memory_bytes / 2 / count;
  return devices.SetLogicalDevices(
      0, std::vector<LogicalDeviceOptions>(count, {share_bytes}));
}

}  // namespace muster
