#include "common/learn/strategy/logical_devices.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/available_cpus.h"

namespace muster {

std::string LogicalDevice::ToString() const {
  return absl::StrCat(kind, ":", index);
}

absl::StatusOr<LogicalDevice> ParseDevice(absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  absl::string_view rest = lower;
  absl::ConsumePrefix(&rest, "/");
  absl::ConsumePrefix(&rest, "device:");
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(rest, absl::MaxSplits(':', 1));
  LogicalDevice device{.kind = std::string(parts.first)};
  if (device.kind == "tpu") {
    return absl::UnimplementedError(
        absl::StrCat("device \"", name,
                     "\": there is no support for TPUs; expected "
                     "for example \"cpu:0\" or \"gpu:0\""));
  }
  const bool has_index = absl::StrContains(rest, ':');
  const bool is_number =
      !has_index || absl::SimpleAtoi(parts.second, &device.index);
  if ((device.kind == kCpuKind || device.kind == kGpuKind) && is_number &&
      device.index >= 0 && device.index < kLogicalDevicesMax) {
    return device;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("device \"", name,
                   "\": expected \"cpu:0\" to \"cpu:", kLogicalDevicesMax - 1,
                   "\", or \"gpu:0\" to \"gpu:", kLogicalDevicesMax - 1, "\""));
}

absl::StatusOr<std::vector<LogicalDevice>> ParseDevices(
    const std::vector<std::string>& names) {
  if (names.empty()) {
    return absl::InvalidArgumentError(
        "no devices; expected at least one, for example \"cpu:0\"");
  }
  std::vector<LogicalDevice> devices;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(LogicalDevice device, ParseDevice(name));
    if (std::find(devices.begin(), devices.end(), device) != devices.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("device \"", name,
                       "\" is named twice; every replica "
                       "needs one of its own"));
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

int ThreadsPerReplica(int wanted, int replica_count) {
  if (wanted > 0) return wanted;
  return std::max(1, AvailableCpus() / replica_count);
}

}  // namespace muster
