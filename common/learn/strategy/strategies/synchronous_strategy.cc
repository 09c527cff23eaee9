#include "common/learn/strategy/strategies/synchronous_strategy.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/compute/variables/local_variable_store.h"
#include "common/compute/variables/on_device/device_variable_store.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/device.h"
#include "common/learn/strategy/local_step_loop.h"
#include "common/learn/strategy/synchronous/synchronous_step_loop.h"

namespace muster {
namespace {

// Kernels divide sums among threads, so the number of threads affects the order
// of summation.
int ThreadsPerOperation(const SynchronousStrategy::Options& options) {
  return options.deterministic_micro_batches > 0
             ? 1
             : options.intra_op_thread_count;
}

ReplicaOperations::Options OperationsOf(
    const SynchronousStrategy::Options& options) {
  return {.runner = {.intra_op_thread_count = ThreadsPerOperation(options),
                     .devices = options.devices,
                     .communication = options.communication,
                     .overlaps_communication = options.overlaps_communication},
          .input = options.input,
          .cross_device_ops = options.cross_device_ops};
}

// Returns the GPU of the only replica; null if there are several replicas or no
// GPU.
Device* GpuOfOnlyReplica(const ReplicaGroup& group,
                         const SynchronousStrategy::Options& options) {
  const bool is_alone =
      group.size() == 1 && options.deterministic_micro_batches == 0;
  return is_alone ? DeviceOf(options.devices, 0) : nullptr;
}

absl::Status CheckShardedState(const ReplicaGroup& group,
                               const SynchronousStrategy::Options& options) {
  if (options.sharded_state == ShardedState::kNone) return absl::OkStatus();
  const absl::string_view state = ShardedStateName(options.sharded_state);
  if (options.shares_variables) {
    return absl::InvalidArgumentError(absl::StrCat(
        "sharded_state is ", state,
        " and the replicas share one copy of the variables and their state; "
        "leave it out"));
  }
  for (int replica = 0; replica < group.local_count(); ++replica) {
    if (DeviceOf(options.devices, replica) == nullptr) continue;
    return absl::UnimplementedError(absl::StrCat(
        "sharded_state is ", state, " and replica ", replica,
        " of this process is on a GPU; only state on CPUs is sharded: leave it "
        "out, or train with devices: \"cpu:0\""));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SynchronousStrategy::CheckOptions(const ReplicaGroup& group,
                                               const Options& options) {
  const CommunicationOptions& communication = options.communication;
  if (communication.bytes_per_pack < 0) {
    return absl::InvalidArgumentError(absl::StrCat("bytes_per_pack is ",
                                                   communication.bytes_per_pack,
                                                   "; expected at least 0"));
  }
  if (communication.timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the timeout of communication is ",
        absl::FormatDuration(communication.timeout), "; expected more than 0"));
  }
  if (options.intra_op_thread_count < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("intra_op_thread_count is ", options.intra_op_thread_count,
                     "; expected at least 1"));
  }
  const int micro_batch_count = options.deterministic_micro_batches;
  if (micro_batch_count != 0 && micro_batch_count < group.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "deterministic_micro_batches is ", micro_batch_count, " and there are ",
        group.size(), " replicas; every one needs a micro-batch"));
  }
  if (micro_batch_count != 0 && options.cross_device_ops != nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cross_device_ops is ", options.cross_device_ops->name(),
        " and deterministic_micro_batches is ", micro_batch_count,
        "; micro-batches are summed in a fixed order of their own: set only "
        "one of the two"));
  }
  if (options.shares_variables && group.worker_count() > 1) {
    return absl::InvalidArgumentError(
        "several workers cannot share one copy of the variables");
  }
  return CheckShardedState(group, options);
}

absl::StatusOr<MirroredVariableStore::Copies>
SynchronousStrategy::MakeVariables(const ReplicaGroup& group,
                                   const Options& options) {
  MirroredVariableStore::Copies copies;
  if (options.shares_variables) return copies;
  for (int replica = 0; replica < group.local_count(); ++replica) {
    Device* const device = DeviceOf(options.devices, replica);
    if (device == nullptr) {
      copies.push_back(std::make_unique<LocalVariableStore>());
      continue;
    }
    ASSIGN_OR_RETURN(std::unique_ptr<DeviceVariableStore> on_gpu,
                     DeviceVariableStore::Create(device));
    copies.push_back(std::move(on_gpu));
  }
  return copies;
}

SynchronousStrategy::SynchronousStrategy(
    std::unique_ptr<ReplicaGroup> group, Options options,
    MirroredVariableStore::Copies variables)
    : ReplicaOperations(group.get(), &variables_, /*single=*/nullptr,
                        OperationsOf(options)),
      options_(std::move(options)),
      group_(std::move(group)),
      variables_(group_.get(), options_.shares_variables,
                 options_.communication.timeout, std::move(variables),
                 options_.sharded_state),
      agreement_(group_.get(), options_.communication.timeout,
                 options_.shared_seed) {}

StrategyReport SynchronousStrategy::Report() const {
  StrategyReport report;
  const absl::StatusOr<int64_t> state_bytes = variables_.StateBytes();
  if (state_bytes.ok()) report.replica_state_bytes = *state_bytes;
  return report;
}

absl::StatusOr<std::unique_ptr<StepLoop>> SynchronousStrategy::CreateLoop(
    const Graph& step, const Dataset& dataset, LoopKind kind) {
  // A single replica on a GPU waits for no others, so its steps can overlap.
  Device* const device = GpuOfOnlyReplica(*group_, options_);
  if (device != nullptr && !options_.shares_variables) {
    return LocalStepLoop::Create(
        step, dataset, &variables_.copy(0),
        {.device = device,
         .thread_count = ThreadsPerOperation(options_),
         .prefetch_batch_count = options_.input.prefetch_step_count});
  }
  return SynchronousStepLoop::Create(
      step, dataset, kind, group_.get(), &variables_,
      {.intra_op_thread_count = ThreadsPerOperation(options_),
       .devices = options_.devices,
       .input = options_.input,
       .communication = options_.communication,
       .overlaps_communication = options_.overlaps_communication,
       .deterministic_micro_batches = options_.deterministic_micro_batches,
       .note_activity = options_.note_activity});
}

}  // namespace muster
