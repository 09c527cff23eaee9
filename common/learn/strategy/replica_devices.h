#ifndef COMMON_LEARN_STRATEGY_REPLICA_DEVICES_H_
#define COMMON_LEARN_STRATEGY_REPLICA_DEVICES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/runtime/executable.h"
#include "common/compute/variables/variable_session.h"
#include "common/core/device/device.h"
#include "common/learn/strategy/logical_devices.h"

namespace muster {

// The devices of the replicas of this process, in their order; null stands for
// the host. Fewer than there are replicas: the rest are on the host.
using ReplicaDevices = std::vector<Device*>;

// Returns the device of replica `replica`; null: the host.
inline Device* DeviceOf(const ReplicaDevices& devices, int replica) {
  return replica < static_cast<int>(devices.size()) ? devices[replica]
                                                    : nullptr;
}

// Returns `names`, or if there are none all logical GPUs of the process, or
// "cpu:0" if it has no GPU.
//   errors  as DeviceSet::CountLogicalDevices(), but for kUnavailable
//
// Equivalent to: the devices of tf.distribute.MirroredStrategy().
absl::StatusOr<std::vector<std::string>> NamedOrAllDevices(
    const std::vector<std::string>& names);

// Finds the devices of the process, DeviceSet::OfProcess(), that have these
// names. They live as long as the process.
//   kInvalidArgument  there is no such GPU; says how many there are
//   kUnavailable      there is none at all; says why
absl::StatusOr<ReplicaDevices> FindReplicaDevices(
    absl::Span<const LogicalDevice> devices);

// Compiles a step of replica `replica` for its device, with the built-in ops.
// ExecutableOptions::device and host_kernels are set here.
//   errors  as Executable::Compile()
absl::StatusOr<std::unique_ptr<Executable>> CompileReplicaStep(
    const Graph& step, VariableSessionFactory* variables,
    const ReplicaDevices& devices, int replica, ExecutableOptions options);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_REPLICA_DEVICES_H_
