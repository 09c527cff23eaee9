#include "common/learn/strategy/strategies/default_strategy.h"

#include <memory>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph.h"
#include "common/compute/runtime/process_devices.h"
#include "common/compute/variables/local_variable_store.h"
#include "common/compute/variables/on_device/device_variable_store.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/device.h"
#include "common/core/system/available_cpus.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/local_step_loop.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/strategy/synchronous/local_replicas.h"

namespace muster {
namespace {

absl::StatusOr<std::unique_ptr<ReplicaVariables>> MakeVariables(
    Device* device) {
  if (device == nullptr) return std::make_unique<LocalVariableStore>();
  return DeviceVariableStore::Create(device);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DefaultStrategy>> DefaultStrategy::Create(
    const DefaultStrategyOptions& options) {
  if (options.thread_count < 0 || options.prefetch_batch_count < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "default strategy: thread_count is ", options.thread_count,
        " and prefetch_batch_count is ", options.prefetch_batch_count,
        "; both must be at least 0"));
  }
  DefaultStrategyOptions resolved = options;
  if (resolved.thread_count == 0) {
    resolved.thread_count = AvailableCpus();
  }
  ASSIGN_OR_RETURN(Device * device, FindDefaultDevice());
  ASSIGN_OR_RETURN(std::unique_ptr<ReplicaVariables> variables,
                   MakeVariables(device));
  ASSIGN_OR_RETURN(std::unique_ptr<ReplicaGroup> group, MakeLocalReplicas(1));
  return absl::WrapUnique(new DefaultStrategy(std::move(group), {device},
                                              std::move(variables), resolved));
}

DefaultStrategy::DefaultStrategy(std::unique_ptr<ReplicaGroup> group,
                                 ReplicaDevices devices,
                                 std::unique_ptr<ReplicaVariables> variables,
                                 const DefaultStrategyOptions& options)
    : ReplicaOperations(
          group.get(), /*mirrored=*/nullptr, variables.get(),
          {.runner = {.intra_op_thread_count = options.thread_count,
                      .devices = devices},
           .input = {.prefetch_step_count = options.prefetch_batch_count}}),
      options_(options),
      group_(std::move(group)),
      devices_(std::move(devices)),
      variables_(std::move(variables)) {}

absl::StatusOr<std::unique_ptr<StepLoop>> DefaultStrategy::CreateLoop(
    const Graph& step, const Dataset& dataset, LoopKind) {
  return LocalStepLoop::Create(
      step, dataset, variables_.get(),
      {.device = devices_[0],
       .thread_count = options_.thread_count,
       .prefetch_batch_count = options_.prefetch_batch_count});
}

}  // namespace muster
