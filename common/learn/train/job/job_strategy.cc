#include "common/learn/train/job/job_strategy.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/learn/strategy/communication_options.h"
#include "common/learn/strategy/input/distributed_dataset.h"
#include "common/learn/strategy/logical_devices.h"
#include "common/learn/strategy/replica_devices.h"
#include "common/learn/strategy/sharded_state.h"
#include "common/learn/strategy/strategies/central_storage_strategy.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategies/mirrored_strategy.h"
#include "common/learn/strategy/strategies/multi_worker_mirrored_strategy.h"
#include "common/learn/strategy/strategies/one_device_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/strategy/tpu/tpu_strategy.h"
#include "common/learn/strategy/tpu/tpu_system.h"
#include "common/learn/train/job/job_canonical.h"
#include "common/learn/train/job/job_data.h"
#include "common/learn/train/job/resolved_job.h"
#include "common/net/process/task_options.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using proto::JobStrategy;

template <typename Names>
std::vector<std::string> DeviceNames(const Names& names) {
  return {names.begin(), names.end()};
}

std::string DeviceOr(const std::string& device) {
  return device.empty() ? "cpu:0" : device;
}

absl::Status CheckCount(absl::string_view field, int64_t count) {
  if (count >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "strategy: ", field, " is ", count, "; expected at least 0"));
}

// The fields that all synchronous strategies have.
template <typename Kind>
absl::Status CheckNumbers(const Kind& kind) {
  RETURN_IF_ERROR(CheckCount("thread_count", kind.thread_count()));
  return CheckCount("deterministic_micro_batches",
                    kind.deterministic_micro_batches());
}

absl::StatusOr<CommunicationOptions> BuildJobCommunication(
    const proto::JobCommunication& communication) {
  CommunicationOptions options{.bytes_per_pack =
                                   communication.bytes_per_pack()};
  RETURN_IF_ERROR(CheckCount("communication.bytes_per_pack",
                             communication.bytes_per_pack()));
  if (communication.has_timeout_seconds()) {
    // The comparison also refuses what is not a number.
    if (!(communication.timeout_seconds() > 0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "strategy: communication.timeout_seconds is ",
          communication.timeout_seconds(), "; expected more than 0"));
    }
    options.timeout = absl::Seconds(communication.timeout_seconds());
  }
  switch (communication.implementation()) {
    case proto::JobCommunication::AUTO:
      return options;
    case proto::JobCommunication::RING:
      options.implementation = CommunicationImplementation::kRing;
      return options;
    case proto::JobCommunication::NCCL:
      options.implementation = CommunicationImplementation::kNccl;
      return options;
    default:
      return absl::InvalidArgumentError(
          "strategy: communication.implementation is unknown");
  }
}

absl::StatusOr<ShardedState> BuildShardedState(
    const JobStrategy::MultiWorkerMirrored& settings) {
  switch (settings.sharded_state()) {
    case JobStrategy::MultiWorkerMirrored::NONE:
      return ShardedState::kNone;
    case JobStrategy::MultiWorkerMirrored::OPTIMIZER:
      return ShardedState::kOptimizer;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("strategy: sharded_state is ",
                       static_cast<int>(settings.sharded_state()),
                       "; expected NONE or OPTIMIZER"));
  }
}

absl::Status CheckReplicas(const std::vector<std::string>& devices,
                           const proto::JobCommunication& communication) {
  // Which devices there are where none is named, the process finds out.
  if (!devices.empty()) RETURN_IF_ERROR(ParseDevices(devices).status());
  return BuildJobCommunication(communication).status();
}

// The threads of one replica: what the job says, or its part of this process'.
template <typename Kind>
int ThreadsOf(const Kind& kind, size_t replica_count, int thread_count) {
  if (kind.has_thread_count()) return kind.thread_count();
  const int count = static_cast<int>(replica_count);
  return thread_count == 0 ? 0 : std::max(1, thread_count / count);
}

absl::StatusOr<std::unique_ptr<Strategy>> BuildOneDevice(
    const JobStrategy::OneDevice& settings, const InputOptions& input,
    int thread_count) {
  return OneDeviceStrategy::Create(
      {.device = DeviceOr(settings.device()),
       .thread_count = ThreadsOf(settings, 1, thread_count),
       .input = input,
       .deterministic_micro_batches = settings.deterministic_micro_batches()});
}

absl::StatusOr<std::unique_ptr<Strategy>> BuildMirrored(
    const JobStrategy::Mirrored& settings, const InputOptions& input,
    int thread_count) {
  MirroredStrategyOptions options{
      .input = input,
      .deterministic_micro_batches = settings.deterministic_micro_batches()};
  ASSIGN_OR_RETURN(options.devices,
                   NamedOrAllDevices(DeviceNames(settings.devices())));
  options.thread_count =
      ThreadsOf(settings, options.devices.size(), thread_count);
  ASSIGN_OR_RETURN(options.communication,
                   BuildJobCommunication(settings.communication()));
  return MirroredStrategy::Create(options);
}

absl::StatusOr<std::unique_ptr<Strategy>> BuildCentralStorage(
    const JobStrategy::CentralStorage& settings, const InputOptions& input,
    int thread_count) {
  CentralStorageStrategyOptions options{
      .parameter_device = DeviceOr(settings.parameter_device()),
      .input = input,
      .deterministic_micro_batches = settings.deterministic_micro_batches()};
  ASSIGN_OR_RETURN(options.compute_devices,
                   NamedOrAllDevices(DeviceNames(settings.compute_devices())));
  options.thread_count =
      ThreadsOf(settings, options.compute_devices.size(), thread_count);
  ASSIGN_OR_RETURN(options.communication,
                   BuildJobCommunication(settings.communication()));
  return CentralStorageStrategy::Create(options);
}

absl::StatusOr<std::unique_ptr<Strategy>> BuildTpu(
    const JobStrategy::Tpu& settings, const InputOptions& input) {
  TpuClusterResolver resolver{.cpu_device_count = settings.cpu_device_count()};
  if (!settings.plugin().empty()) resolver.plugin = settings.plugin();
  ASSIGN_OR_RETURN(std::shared_ptr<TpuSystem> system,
                   InitializeTpuSystem(resolver));
  return TpuStrategy::Create(
      std::move(system), {.prefetch_batch_count = input.prefetch_step_count});
}

absl::StatusOr<std::unique_ptr<Strategy>> BuildSingleWorker(
    const proto::TrainingJob& job, int thread_count) {
  ASSIGN_OR_RETURN(MultiWorkerMirroredStrategyOptions options,
                   BuildMultiWorkerMirroredOptions(job));
  ASSIGN_OR_RETURN(options.devices, NamedOrAllDevices(options.devices));
  options.thread_count = ThreadsOf(job.strategy().multi_worker_mirrored(),
                                   options.devices.size(), thread_count);
  return MultiWorkerMirroredStrategy::CreateAlone(options);
}

}  // namespace

absl::Status CheckJobStrategy(const JobStrategy& strategy) {
  switch (strategy.kind_case()) {
    case JobStrategy::kOneDevice:
      RETURN_IF_ERROR(CheckNumbers(strategy.one_device()));
      return ParseDevice(DeviceOr(strategy.one_device().device())).status();
    case JobStrategy::kMirrored:
      RETURN_IF_ERROR(CheckNumbers(strategy.mirrored()));
      return CheckReplicas(DeviceNames(strategy.mirrored().devices()),
                           strategy.mirrored().communication());
    case JobStrategy::kCentralStorage: {
      const JobStrategy::CentralStorage& storage = strategy.central_storage();
      RETURN_IF_ERROR(CheckNumbers(storage));
      RETURN_IF_ERROR(
          ParseDevice(DeviceOr(storage.parameter_device())).status());
      return CheckReplicas(DeviceNames(storage.compute_devices()),
                           storage.communication());
    }
    case JobStrategy::kMultiWorkerMirrored:
      RETURN_IF_ERROR(CheckNumbers(strategy.multi_worker_mirrored()));
      RETURN_IF_ERROR(
          BuildShardedState(strategy.multi_worker_mirrored()).status());
      return CheckReplicas(
          DeviceNames(strategy.multi_worker_mirrored().devices()),
          strategy.multi_worker_mirrored().communication());
    case JobStrategy::kTpu:
      return CheckCount("cpu_device_count", strategy.tpu().cpu_device_count());
    default:
      return absl::OkStatus();
  }
}

absl::StatusOr<MultiWorkerMirroredStrategyOptions>
BuildMultiWorkerMirroredOptions(const proto::TrainingJob& job) {
  RETURN_IF_ERROR(CheckJobStrategy(job.strategy()));
  const JobStrategy::MultiWorkerMirrored& settings =
      job.strategy().multi_worker_mirrored();
  MultiWorkerMirroredStrategyOptions options{
      .devices = DeviceNames(settings.devices()),
      .thread_count = settings.thread_count(),
      .deterministic_micro_batches = settings.deterministic_micro_batches()};
  ASSIGN_OR_RETURN(options.communication,
                   BuildJobCommunication(settings.communication()));
  ASSIGN_OR_RETURN(options.sharded_state, BuildShardedState(settings));
  ASSIGN_OR_RETURN(options.input, BuildJobInput(job.input()));
  return options;
}

absl::StatusOr<std::unique_ptr<Strategy>> BuildLocalStrategy(
    const proto::TrainingJob& job, int thread_count) {
  const JobStrategy& strategy = job.strategy();
  RETURN_IF_ERROR(CheckJobStrategy(strategy));
  ASSIGN_OR_RETURN(const InputOptions input, BuildJobInput(job.input()));
  switch (strategy.kind_case()) {
    case JobStrategy::kParameterServer:
      return absl::InvalidArgumentError(
          "the job asks for strategy { parameter_server }, which needs a "
          "cluster: set TF_CONFIG, or start it with launch");
    case JobStrategy::kOneDevice:
      return BuildOneDevice(strategy.one_device(), input, thread_count);
    case JobStrategy::kMirrored:
      return BuildMirrored(strategy.mirrored(), input, thread_count);
    case JobStrategy::kCentralStorage:
      return BuildCentralStorage(strategy.central_storage(), input,
                                 thread_count);
    case JobStrategy::kMultiWorkerMirrored:
      return BuildSingleWorker(job, thread_count);
    case JobStrategy::kTpu:
      return BuildTpu(strategy.tpu(), input);
    case JobStrategy::kDefault:
    case JobStrategy::KIND_NOT_SET:
      break;
  }
  const JobStrategy::Default& settings = strategy.default_();
  return DefaultStrategy::Create({.thread_count = settings.has_thread_count()
                                                      ? settings.thread_count()
                                                      : thread_count});
}

namespace {

absl::StatusOr<std::unique_ptr<Strategy>> BuildMultiWorkerMirrored(
    const ResolvedJob& job, Task& task) {
  ASSIGN_OR_RETURN(MultiWorkerMirroredStrategyOptions options,
                   BuildMultiWorkerMirroredOptions(job.job()));
  options.agreed.push_back({.name = "job file",
                            .text = job.agreed().text,
                            .lines = job.agreed().lines});
  return MultiWorkerMirroredStrategy::Create(task, options);
}

}  // namespace

StrategyFactory SynchronousStrategyFactory(Task* task) {
  return [task](const ResolvedJob& job)
             -> absl::StatusOr<std::unique_ptr<Strategy>> {
    const TaskOptions& options = task->options();
    if (options.config.IsAlone()) {
      return BuildLocalStrategy(job.job(), options.thread_count);
    }
    const JobStrategy& strategy = job.job().strategy();
    switch (strategy.kind_case()) {
      case JobStrategy::KIND_NOT_SET:
      case JobStrategy::kMultiWorkerMirrored:
        return BuildMultiWorkerMirrored(job, *task);
      case JobStrategy::kParameterServer:
        return absl::InvalidArgumentError(absl::StrCat(
            "the job needs parameter servers, and this cluster has none: ",
            options.config.source, "'s \"cluster\" needs a \"ps\" list. Or ",
            "take `strategy` out of the job file, and the workers train in ",
            "sync"));
      default:
        return absl::InvalidArgumentError(
            "the job asks for a strategy of one process, and this cluster has "
            "several, each of which would train a model of its own: take "
            "`strategy` out of the job file or make it multi_worker_mirrored, "
            "or start one process without TF_CONFIG");
    }
  };
}

}  // namespace muster
