#ifndef COMMON_LEARN_STRATEGY_LOGICAL_DEVICES_H_
#define COMMON_LEARN_STRATEGY_LOGICAL_DEVICES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// The device of a replica: "cpu:0". All logical CPUs of a strategy share the
// cores of the machine, so programs for many replicas run on any machine.
struct LogicalDevice {
  std::string kind;  // "cpu".
  int index = 0;

  std::string ToString() const;
  bool operator==(const LogicalDevice&) const = default;
};

inline constexpr int kLogicalCpusMax = 64;

// Parses "cpu:1", "/cpu:1", "/device:CPU:1" and "cpu", which is "cpu:0".
//   kInvalidArgument  not such a name, or a number above kLogicalCpusMax - 1
//   kUnimplemented    a kind of device that this build does not support
absl::StatusOr<LogicalDevice> ParseDevice(absl::string_view name);

//   kInvalidArgument  also: the list is empty, or contains a device twice
absl::StatusOr<std::vector<LogicalDevice>> ParseDevices(
    const std::vector<std::string>& names);

// Returns the number of threads per operation of each of `replica_count`
// replicas that share the cores of this machine; `wanted` if it is not 0.
int ThreadsPerReplica(int wanted, int replica_count);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_LOGICAL_DEVICES_H_
