#ifndef COMMON_LEARN_STRATEGY_LOGICAL_DEVICES_H_
#define COMMON_LEARN_STRATEGY_LOGICAL_DEVICES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

inline constexpr absl::string_view kCpuKind = "cpu";
inline constexpr absl::string_view kGpuKind = "gpu";

// The device of a replica: "cpu:0" or "gpu:0". All logical CPUs of a strategy
// share the cores of the machine, so programs for many replicas run on any
// machine. Logical GPUs are those of DeviceSet.
struct LogicalDevice {
  std::string kind;  // kCpuKind or kGpuKind.
  int index = 0;

  std::string ToString() const;
  bool operator==(const LogicalDevice&) const = default;
};

inline constexpr int kLogicalDevicesMax = 64;  // Of each kind.

// Parses "gpu:1", "/gpu:1", "/device:GPU:1" and "gpu", which is "gpu:0". Does
// not look whether there is such a GPU.
//   kInvalidArgument  not such a name, or a number above kLogicalDevicesMax - 1
//   kUnimplemented    a TPU
absl::StatusOr<LogicalDevice> ParseDevice(absl::string_view name);

//   kInvalidArgument  also: the list is empty, or contains a device twice
absl::StatusOr<std::vector<LogicalDevice>> ParseDevices(
    const std::vector<std::string>& names);

// Returns the number of threads per operation of each of `replica_count`
// replicas that share the cores of this machine; `wanted` if it is not 0.
int ThreadsPerReplica(int wanted, int replica_count);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_LOGICAL_DEVICES_H_
