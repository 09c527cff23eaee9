#ifndef COMMON_LEARN_STRATEGY_LOGICAL_DEVICES_H_
#define COMMON_LEARN_STRATEGY_LOGICAL_DEVICES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// Where a replica runs: "cpu:0". The cores of the machine are shared by all
// logical CPUs that a strategy names, so that programs for many replicas run
// anywhere.
struct LogicalDevice {
  std::string kind;  // "cpu".
  int index = 0;

  std::string ToString() const;
  bool operator==(const LogicalDevice&) const = default;
};

inline constexpr int kLogicalCpusMax = 64;

// Knows "cpu:1", "/cpu:1", "/device:CPU:1" and "cpu", which is "cpu:0".
//   kInvalidArgument  no such name, or a number above kLogicalCpusMax - 1
//   kUnimplemented    a device of a kind that this build does not compute on
absl::StatusOr<LogicalDevice> ParseDevice(absl::string_view name);

//   kInvalidArgument  also: none, or one is named twice
absl::StatusOr<std::vector<LogicalDevice>> ParseDevices(
    const std::vector<std::string>& names);

// The threads that one operation of each of `replica_count` replicas may use
// when they share the cores of this machine; `wanted` if it is not 0.
int ThreadsPerReplica(int wanted, int replica_count);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_LOGICAL_DEVICES_H_
