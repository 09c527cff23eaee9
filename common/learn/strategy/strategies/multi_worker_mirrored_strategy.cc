#include "common/learn/strategy/strategies/multi_worker_mirrored_strategy.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/device_context.h"
#include "common/core/system/clock.h"
#include "common/io/storage/object_url.h"
#include "common/learn/strategy/logical_devices.h"
#include "common/learn/strategy/replica_devices.h"
#include "common/learn/strategy/synchronous/local_replicas.h"
#include "common/learn/strategy/synchronous/mirrored_variable_store.h"
#include "common/learn/strategy/synchronous/replica_group.h"
#include "common/net/cluster/cluster_config.h"
#include "common/net/cluster/task_id.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/peers/group_error.h"
#include "common/net/collectives/peers/peer_group.h"
#include "common/net/collectives/transports/group_plan.h"
#include "common/net/collectives/transports/transport.h"
#include "common/net/collectives/views/group_view.h"
#include "common/net/collectives/views/renewable_group.h"
#include "common/net/process/exit_code.h"
#include "common/net/process/preemption_notice.h"
#include "common/net/process/task_options.h"
#include "common/net/process/version.h"
#include "common/net/rpc/identity.h"
#include "common/net/status/job_trace.h"
#include "common/net/status/trace_collector.h"
#include "common/net/status/trace_service.h"
#include "proto/group_view.pb.h"

namespace muster {
namespace {

constexpr char kName[] = "multi_worker_mirrored";

// How long a task that cannot train waits to tell tasks that may not have
// started yet.
constexpr absl::Duration kFailureReportTimeout = absl::Seconds(10);

// How often requests to join are looked for in an object store.
constexpr absl::Duration kObjectRequestInterval = absl::Seconds(2);

// Derives a seed from the group's token, which is secret.
constexpr uint64_t kSeedTag = 0x73656564;

JobDigest DigestOf(const Task& task,
                   const MultiWorkerMirroredStrategyOptions& options) {
  const CommunicationOptions& communication = options.communication;
  JobDigest digest;
  digest.Add("version of Muster", std::string(kVersion));
  digest.Add(
      "strategy",
      absl::StrCat(
          kName, "\nbytes_per_pack: ", communication.bytes_per_pack,
          "\ndeterministic_micro_batches: ",
          options.deterministic_micro_batches, "\nsharded_state: ",
          ShardedStateName(options.sharded_state), "\nauto_shard_policy: ",
          std::string(AutoShardPolicyName(options.input.auto_shard_policy))));
  const std::optional<uint64_t> seed = task.options().seed;
  digest.Add("--min_workers", absl::StrCat(task.options().min_workers));
  digest.Add("--seed", seed.has_value() ? absl::StrCat(*seed) : "not given");
  for (const JobDigest::Section& section : options.agreed) digest.Add(section);
  return digest;
}

PeerGroup::Options GroupOptions(
    const Task& task, const MultiWorkerMirroredStrategyOptions& options,
    const ReplicaDevices& devices, int replicas_per_task) {
  const TaskOptions& flags = task.options();
  PeerGroup::Options group;
  group.config = flags.config;
  group.identity = task.identity();
  group.listen_address = flags.listen_address;
  group.replicas_per_task = replicas_per_task;
  group.digest = DigestOf(task, options);
  group.transports.shared_memory = flags.shared_memory;
  group.transports.raw_sockets = flags.raw_sockets;
  group.transports.encrypts_raw_sockets = !flags.tls.empty();
  group.transports.lane_port = flags.lane_port;
  group.transports.devices = devices;
  group.implementation = options.communication.implementation;
  group.implementation_is_required = true;
  group.failure = task.failure();
  group.startup_timeout = task.failure().ok() ? flags.startup_timeout
                                              : std::min(flags.startup_timeout,
                                                         kFailureReportTimeout);
  // A missing peer is detected up to one heartbeat after the heartbeat timeout,
  // so both together are the peer timeout.
  group.heartbeat_interval = flags.peer_timeout / 12;
  group.heartbeat_timeout = 11 * group.heartbeat_interval;
  group.hang_report_interval = flags.hang_report_interval;
  group.add_methods = AddTraceMethod;
  return group;
}

// Returns `status` with the exit code of a task whose group has ended with it.
absl::Status WithGroupExitCode(const absl::Status& status) {
  // A new process may be able to use this GPU, or may be started on a machine
  // with another GPU.
  if (status.GetPayload(kDeviceLostUrl).has_value()) {
    return WithExitCode(status, ExitCode::kRestartMe);
  }
  const auto kind = GroupErrorKindOf(status);
  if (!kind.has_value()) return status;
  switch (*kind) {
    case GroupErrorKind::kPeerLost:
    case GroupErrorKind::kLeftBehind:
      return WithExitCode(status, ExitCode::kRestartMe);
    case GroupErrorKind::kDisagreement:
    case GroupErrorKind::kDuplicateTask:
      return WithExitCode(status, ExitCode::kUsage);
    case GroupErrorKind::kPeerFailed: {
      // A peer that a signal stopped has not failed, and a peer that requests a
      // restart has lost its GPU. In both cases a new process can continue.
      const ExitCode peers = ExitCodeOf(status);
      const bool can_continue = peers == ExitCode::kInterrupted ||
                                peers == ExitCode::kTerminated ||
                                peers == ExitCode::kRestartMe;
      return can_continue ? WithExitCode(status, ExitCode::kRestartMe) : status;
    }
  }
  return status;
}

// Makes traces of this task include the other tasks of the group.
void TraceOthers(Task& task) {
  JobTrace::OfProcess().SetOthers(
      [config = task.options().config, network = task.network(),
       self = task.identity()](TraceCollector* trace) {
        for (const TaskId other : config.cluster.Members()) {
          if (other == config.task) continue;
          const auto address = config.cluster.Address(other);
          if (!address.ok()) continue;
          trace->Add(other.ToString(),
                     network->Connect({.address = *address,
                                       .peer_task_type = std::string(
                                           TaskTypeName(other.type)),
                                       .peer_task_index = other.index,
                                       .caller = self,
                                       .job_id = ""}));
        }
      });
  task.OnJobEnd([](const absl::Status& status) {
    JobTrace::OfProcess().SetOthers(nullptr);
    return status;
  });
}

absl::StatusOr<std::shared_ptr<RenewableGroup>> JoinGroup(
    Task& task, const MultiWorkerMirroredStrategyOptions& options,
    const ReplicaDevices& devices, int replicas_per_task) {
  task.NoteConnecting();
  RenewableGroup::Options renewable{
      .group = GroupOptions(task, options, devices, replicas_per_task),
      .task_count_min = task.options().min_workers,
      .run_dir = task.options().run_dir};
  if (IsObjectUrl(renewable.run_dir)) {
    renewable.request_interval = kObjectRequestInterval;
  }
  absl::StatusOr<std::unique_ptr<RenewableGroup>> joined =
      RenewableGroup::Join(renewable, task.network(), Clock::Real());
  if (!joined.ok()) return WithGroupExitCode(joined.status());
  const std::shared_ptr<RenewableGroup> peers = *std::move(joined);
  TraceOthers(task);
  task.OnJobEnd(
      [peers, timeout = options.end_timeout](const absl::Status& status) {
        // All tasks have agreed to end: no task has failed or is lost.
        const bool is_agreed = PreemptionNotice::OfProcess().was_handled();
        const absl::Status end =
            peers->Leave(is_agreed ? absl::OkStatus() : status, timeout);
        return WithGroupExitCode(end.ok() ? status : end);
      });
  task.OnInterrupt([peers] {
    peers->Fail(
        WithExitCode(absl::CancelledError("training was stopped by a signal"),
                     ExitCode::kTerminated));
  });
  return peers;
}

ReplicaGroup::Membership MembersOf(const std::shared_ptr<PeerGroup>& peers,
                                   int replica_count) {
  ReplicaGroup::Membership members{.worker_index = peers->task_rank(),
                                   .worker_count = peers->task_count()};
  for (int i = 0; i < replica_count; ++i) {
    members.communicators.emplace_back(peers, peers->communicator(i));
  }
  return members;
}

absl::StatusOr<std::unique_ptr<ReplicaGroup>> ReplicasOf(
    const std::shared_ptr<RenewableGroup>& peers, int replica_count,
    absl::Duration timeout, const proto::GroupStart* start) {
  ReplicaGroup::Options options{.timeout = timeout};
  if (peers->is_renewable()) {
    options.reform =
        [peers, replica_count]() -> absl::StatusOr<ReplicaGroup::Membership> {
      const absl::Status renewed = peers->Renew();
      if (!renewed.ok()) return WithGroupExitCode(renewed);
      return MembersOf(peers->current(), replica_count);
    };
  }
  if (start != nullptr) {
    return ReplicaGroup::CreateJoining(
        replica_count, {start->results().begin(), start->results().end()},
        std::move(options));
  }
  ReplicaGroup::Membership members = MembersOf(peers->current(), replica_count);
  options.worker_index = members.worker_index;
  options.worker_count = members.worker_count;
  return ReplicaGroup::Create(std::move(members.communicators),
                              std::move(options));
}

// Returns what a process that joins repeats; no value if this one does not
// join.
absl::StatusOr<std::optional<proto::GroupStart>> StartOfJoining(
    RenewableGroup& peers) {
  if (!peers.is_joining()) return std::nullopt;
  absl::StatusOr<proto::GroupStart> start = peers.AwaitStart();
  if (!start.ok()) return WithGroupExitCode(start.status());
  return *std::move(start);
}

absl::Status CheckLosses(int min_workers,
                         const MultiWorkerMirroredStrategyOptions& options,
                         const ReplicaDevices& devices) {
  if (min_workers == 0) return absl::OkStatus();
  if (options.sharded_state != ShardedState::kNone) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--min_workers is ", min_workers, " and sharded_state is ",
        ShardedStateName(options.sharded_state),
        "; the state of a lost worker would be lost: set only one of the two"));
  }
  for (size_t replica = 0; replica < options.devices.size(); ++replica) {
    if (DeviceOf(devices, static_cast<int>(replica)) == nullptr) continue;
    return absl::UnimplementedError(absl::StrCat(
        "--min_workers is ", min_workers, " and replica ", replica,
        " of this process is on a GPU; only training on CPUs survives losses: "
        "leave it out, or train with devices: \"cpu:0\""));
  }
  return absl::OkStatus();
}

absl::StatusOr<ReplicaDevices> FindDevices(
    const MultiWorkerMirroredStrategyOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<LogicalDevice> devices,
                   ParseDevices(options.devices));
  return FindReplicaDevices(devices);
}

int ReplicaCountOf(const MultiWorkerMirroredStrategyOptions& options) {
  return static_cast<int>(options.devices.size());
}

// Returns the options that a single worker and one of several workers share.
SynchronousStrategy::Options GeneralOptions(
    const MultiWorkerMirroredStrategyOptions& options) {
  return {.name = kName,
          .communication = options.communication,
          .sharded_state = options.sharded_state,
          .input = options.input,
          .intra_op_thread_count =
              ThreadsPerReplica(options.thread_count, ReplicaCountOf(options)),
          .deterministic_micro_batches = options.deterministic_micro_batches};
}

}  // namespace

absl::StatusOr<std::unique_ptr<MultiWorkerMirroredStrategy>>
MultiWorkerMirroredStrategy::Create(
    Task& task, const MultiWorkerMirroredStrategyOptions& options) {
  const ClusterConfig& config = task.options().config;
  if (config.HasParameterServers()) {
    return absl::InvalidArgumentError(absl::StrCat(
        config.source, ": ", kName,
        " trains on workers alone, and the cluster "
        "is ",
        config.cluster.ToString(),
        "; take \"ps\" out of it, or train with parameter_server"));
  }
  MultiWorkerMirroredStrategyOptions settings = options;
  ASSIGN_OR_RETURN(settings.devices, NamedOrAllDevices(options.devices));
  if (settings.thread_count == 0) {
    settings.thread_count =
        std::max(1, task.options().thread_count / ReplicaCountOf(settings));
  }
  if (config.IsAlone()) return CreateAlone(settings);

  ASSIGN_OR_RETURN(ReplicaDevices devices, FindDevices(settings));
  RETURN_IF_ERROR(CheckLosses(task.options().min_workers, settings, devices));
  const int replica_count = ReplicaCountOf(settings);
  ASSIGN_OR_RETURN(const std::shared_ptr<RenewableGroup> peers,
                   JoinGroup(task, settings, devices, replica_count));
  ASSIGN_OR_RETURN(const std::optional<proto::GroupStart> start,
                   StartOfJoining(*peers));
  ASSIGN_OR_RETURN(
      std::unique_ptr<ReplicaGroup> replicas,
      ReplicasOf(peers, replica_count, settings.communication.timeout,
                 start.has_value() ? &*start : nullptr));
  Options general = GeneralOptions(settings);
  general.devices = std::move(devices);
  if (start.has_value()) {
    general.shared_seed = start->shared_seed();
  } else {
    const GroupPlan& plan = peers->current()->plan();
    general.overlaps_communication = plan.transport->leaves_processor_idle();
    general.shared_seed = FoldIn(plan.token, kSeedTag);
  }
  general.note_activity = [peers](const char* activity, uint64_t step) {
    peers->NoteActivity(activity, step);
  };
  RETURN_IF_ERROR(CheckOptions(*replicas, general));
  ASSIGN_OR_RETURN(MirroredVariableStore::Copies variables,
                   MakeVariables(*replicas, general));
  return absl::WrapUnique(new MultiWorkerMirroredStrategy(
      peers, std::move(replicas), std::move(general), std::move(variables)));
}

absl::StatusOr<std::unique_ptr<MultiWorkerMirroredStrategy>>
MultiWorkerMirroredStrategy::CreateAlone(
    const MultiWorkerMirroredStrategyOptions& options) {
  MultiWorkerMirroredStrategyOptions settings = options;
  ASSIGN_OR_RETURN(settings.devices, NamedOrAllDevices(options.devices));
  ASSIGN_OR_RETURN(ReplicaDevices devices, FindDevices(settings));
  ASSIGN_OR_RETURN(std::unique_ptr<ReplicaGroup> replicas,
                   MakeLocalReplicas(
                       ReplicaCountOf(settings),
                       {.implementation = settings.communication.implementation,
                        .transports = {.devices = devices}}));
  Options general = GeneralOptions(settings);
  general.devices = std::move(devices);
  RETURN_IF_ERROR(CheckOptions(*replicas, general));
  ASSIGN_OR_RETURN(MirroredVariableStore::Copies variables,
                   MakeVariables(*replicas, general));
  return absl::WrapUnique(new MultiWorkerMirroredStrategy(
      nullptr, std::move(replicas), std::move(general), std::move(variables)));
}

MultiWorkerMirroredStrategy::MultiWorkerMirroredStrategy(
    std::shared_ptr<RenewableGroup> peers,
    std::unique_ptr<ReplicaGroup> replicas, Options options,
    MirroredVariableStore::Copies variables)
    : SynchronousStrategy(std::move(replicas), std::move(options),
                          std::move(variables)),
      peers_(std::move(peers)) {}

absl::StatusOr<bool> MultiWorkerMirroredStrategy::MayLeave(
    bool wants_to_leave) {
  ASSIGN_OR_RETURN(const int count,
                   agreement().Count("which workers leave", wants_to_leave));
  return count > 0 &&
         group().worker_count() - count >= peers_->task_count_min();
}

GroupMembership* MultiWorkerMirroredStrategy::membership() {
  return peers_ != nullptr && peers_->is_renewable() ? this : nullptr;
}

bool MultiWorkerMirroredStrategy::is_joining() const {
  return peers_->is_joining();
}

absl::Status MultiWorkerMirroredStrategy::NoteTrainingBegins() {
  if (++training_count_ > 1) return absl::OkStatus();
  proto::GroupStart start;
  start.set_shared_seed(agreement().shared_seed().value_or(0));
  const std::optional<std::vector<std::string>> record = group().TakeRecord();
  if (record.has_value()) {
    start.mutable_results()->Assign(record->begin(), record->end());
  } else {
    start.set_obstacle(
        "before training, its program has run steps, or more than 64 MiB of "
        "agreements, which a process that joins cannot repeat");
  }
  return peers_->WriteStart(start);
}

absl::Status MultiWorkerMirroredStrategy::Join() {
  ++training_count_;
  return group().Change([this]() -> absl::StatusOr<ReplicaGroup::Membership> {
    const absl::Status admitted = peers_->AwaitAdmission();
    if (!admitted.ok()) return WithGroupExitCode(admitted);
    return MembersOf(peers_->current(), group().local_count());
  });
}

bool MultiWorkerMirroredStrategy::has_joiners() const {
  return training_count_ == 1 && peers_->has_joiners();
}

absl::Status MultiWorkerMirroredStrategy::Propose() {
  return peers_->ClaimWithJoiners();
}

absl::Status MultiWorkerMirroredStrategy::TakeIn() {
  return group().Change([this]() -> absl::StatusOr<ReplicaGroup::Membership> {
    const absl::Status advanced = peers_->Advance();
    if (!advanced.ok()) return WithGroupExitCode(advanced);
    return MembersOf(peers_->current(), group().local_count());
  });
}

absl::StatusOr<std::string> MultiWorkerMirroredStrategy::FromOthers(
    absl::string_view what, std::string bytes) {
  return agreement().FromRank(group().newest_rank(), what, std::move(bytes));
}

StrategyReport MultiWorkerMirroredStrategy::Report() const {
  StrategyReport report = SynchronousStrategy::Report();
  if (peers_ == nullptr) return report;
  report.timeline = peers_->timeline();
  for (const GroupView::Member& member : peers_->view().members) {
    report.tasks.push_back(absl::StrCat(member.task.ToString(), " ",
                                        member.address, " incarnation ",
                                        IncarnationString(member.incarnation)));
  }
  return report;
}

}  // namespace muster
