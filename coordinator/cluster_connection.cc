#include "coordinator/cluster_connection.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/status_message.h"
#include "common/core/system/host_name.h"
#include "common/core/system/log.h"
#include "common/core/system/metrics.h"
#include "common/net/cluster/name_lookup.h"
#include "common/net/cluster/task_methods.h"
#include "common/net/process/preemption_notice.h"
#include "common/net/rpc/channel.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/status_detail.h"
#include "coordinator/closure_dispatcher.h"
#include "proto/parameter_server.pb.h"
#include "proto/rpc.pb.h"
#include "proto/task.pb.h"
#include "proto/worker.pb.h"
#include "ps/client/earlier_generation.h"
#include "ps/client/methods.h"

namespace muster {
namespace {

constexpr int kListedShardsMax = 8;
// A busy machine may respond late.
constexpr absl::Duration kKeepaliveMin = absl::Seconds(1);
constexpr absl::Duration kDescribeTimeout = absl::Seconds(5);
constexpr absl::Duration kTakeOverAtStartTimeout = absl::Seconds(30);
// With copies, a takeover costs little, and answers wait for a lost copy.
constexpr absl::Duration kCopyAskInterval = absl::Milliseconds(50);
constexpr absl::Duration kCopyReconnectTimeout = absl::Milliseconds(100);

absl::Status CheckOptions(const ClusterConnection::Options& options) {
  for (const TaskType type : {TaskType::kWorker, TaskType::kPs}) {
    const int count = options.cluster.task_count(type);
    if (count == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "parameter-server training needs at least one ", TaskTypeName(type),
          " in the cluster; it is ", options.cluster.ToString()));
    }
    if (options.cluster.Tasks(type).back().index != count - 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("the cluster must list every ", TaskTypeName(type),
                       " from 0 on; it is ", options.cluster.ToString()));
    }
  }
  const int ps_count = options.cluster.task_count(TaskType::kPs);
  const int copy_count = options.server_copy_count;
  if (copy_count < 1 || copy_count > 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("ps_copies is ", copy_count, "; expected 1 or 2"));
  }
  if (ps_count % copy_count != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the number of ps tasks is ", ps_count,
        "; expected an even number with ps_copies: 2, which takes two tasks "
        "for each server"));
  }
  if (options.closures_in_flight < 1) {
    return absl::InvalidArgumentError(absl::StrCat("closures_in_flight is ",
                                                   options.closures_in_flight,
                                                   "; expected at least 1"));
  }
  if (options.closures_in_flight > 1 && options.rounds.gradient_count > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("closures_in_flight is ", options.closures_in_flight,
                     "; expected 1, because training is synchronous"));
  }
  const int worker_count = options.cluster.task_count(TaskType::kWorker);
  if (options.worker_count_min < 0 || options.worker_count_min > worker_count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "min_workers is ", options.worker_count_min, "; expected at most ",
        worker_count, ", the number of workers in the cluster, or 0 for all"));
  }
  return absl::OkStatus();
}

// True if no worker is connected, or a parameter server is not.
bool LacksTasks(const ClosureDispatcher& dispatcher,
                const ServerCopies& servers) {
  StatusReport workers;
  dispatcher.AddStatus(&workers);
  const std::vector<ServerWatch::State> states = servers.states();
  return std::none_of(workers.tasks.begin(), workers.tasks.end(),
                      [](const TaskStatus& task) {
                        return task.state == TaskStatus::State::kConnected;
                      }) ||
         std::any_of(states.begin(), states.end(),
                     [](const ServerWatch::State& state) {
                       return state.incarnation == 0 || !state.lost.ok();
                     });
}

std::string NewJobId() {
  return absl::StrCat(absl::Hex(RandomIdentity(), absl::kZeroPad16));
}

}  // namespace

std::vector<TaskId> ClusterConnection::WorkersAndServers(
    const ClusterSpec& cluster) {
  std::vector<TaskId> tasks = cluster.Tasks(TaskType::kWorker);
  for (const TaskId task : cluster.Tasks(TaskType::kPs)) tasks.push_back(task);
  return tasks;
}

absl::StatusOr<std::shared_ptr<ClusterConnection>> ClusterConnection::Open(
    const Options& given, Network* network, Clock* clock,
    const std::function<void(absl::string_view)>& report) {
  RETURN_IF_ERROR(CheckOptions(given));
  Options options = given;
  ASSIGN_OR_RETURN(std::unique_ptr<TrainingJournal> journal,
                   OpenJournal(&options, clock));
  std::shared_ptr<ClusterConnection> connection(
      new ClusterConnection(options, std::move(journal), network, clock));
  connection->StartDispatcher();
  connection->StartWatch();
  connection->metrics_source_ = std::make_unique<MetricSource>(
      [raw = connection.get()](MetricSink* sink) { raw->AddMetrics(sink); });
  connection->status_source_ = std::make_unique<StatusSource>(
      [raw = connection.get()](StatusReport* report) {
        raw->AddStatus(report);
      });
  RETURN_IF_ERROR(connection->AwaitTasks(report));

  ASSIGN_OR_RETURN(const uint64_t generation, connection->Adopt());
  RETURN_IF_ERROR(connection->OpenVariables(generation));
  connection->dispatcher().timeline().Begin(
      connection->dispatcher().worker_count());
  JobControl::OfProcess().SetDrainer(
      [raw = connection.get()](TaskId task, JobControl::Done done) {
        raw->Drain(task, std::move(done));
      });
  return connection;
}

absl::StatusOr<std::unique_ptr<TrainingJournal>> ClusterConnection::OpenJournal(
    Options* options, Clock* clock) {
  // A coordinator that cannot train only tells the other tasks.
  const std::string folder = options->failure.ok() ? options->journal_dir : "";
  if (options->job_id.empty()) options->job_id = NewJobId();
  absl::StatusOr<std::unique_ptr<TrainingJournal>> journal =
      TrainingJournal::Open({.folder = folder, .clock = clock},
                            {.job_id = options->job_id,
                             .coordinator_epoch = options->coordinator_epoch,
                             .seed = options->seed,
                             .generation = options->generation,
                             .closure_ids = options->closure_ids});
  if (!journal.ok()) {
    options->failure = journal.status();
    return TrainingJournal::None();
  }
  const TrainingJournal::Identity& identity = (*journal)->identity();
  options->job_id = identity.job_id;
  options->coordinator_epoch = identity.coordinator_epoch;
  options->seed = identity.seed;
  options->generation = identity.generation;
  options->closure_ids = identity.closure_ids;
  if (!(*journal)->is_kept()) {
    options->coordinator_return_timeout = absl::ZeroDuration();
  }
  return journal;
}

absl::StatusOr<uint64_t> ClusterConnection::Adopt() {
  const TrainingJournal::Identity& identity = journal_->identity();
  servers_->Begin(identity.copies, identity.server_state_ids);
  if (!journal_->is_kept()) {
    servers_->Start();
    return options_.generation;
  }
  servers_->AwaitTakeOvers(clock_->Now() + kTakeOverAtStartTimeout);
  std::vector<ServerDescription> servers;
  std::vector<uint64_t> state_ids;
  uint64_t newest_step_id = 0;
  const std::vector<ServerWatch::State> states = servers_->states();
  for (int server = 0; server < servers_->server_count(); ++server) {
    absl::StatusOr<proto::DescribeResponse> described =
        servers_->channel(server).Call<proto::DescribeResponse>(
            kDescribeMethod, proto::DescribeRequest(),
            {.timeout = kDescribeTimeout});
    // The tasks keep what they have, and this process may find it.
    if (!described.ok()) {
      return WithExitCode(described.status(), ExitCode::kRestartMe);
    }
    newest_step_id = std::max(newest_step_id, described->newest_step_id());
    state_ids.push_back(described->state_id());
    servers.push_back({.name = absl::StrCat("ps ", states[server].task),
                       .incarnation = states[server].incarnation,
                       .state_id = described->state_id(),
                       .job_id = described->job_id(),
                       .generation = described->generation()});
  }
  servers_->SetStates(state_ids);
  if (options_.server_copy_count > 1) {
    RETURN_IF_ERROR(journal_->NoteCopies(servers_->record()));
  }
  const absl::StatusOr<Adoption> adoption = journal_->Decide(servers);
  absl::Status status = adoption.status();
  if (status.ok() && adoption->kind == AdoptionKind::kEndTasks) {
    EndJob(absl::OkStatus());
    return absl::AbortedError(
        "the last coordinator had ended the job with success, and some tasks "
        "were not told; they end now, and nothing is trained");
  }
  if (status.ok() && adoption->kind == AdoptionKind::kRestartTasks) {
    status = WithExitCode(
        absl::AbortedError(absl::StrCat(
            "all tasks are to be started again, because the training of the "
            "last coordinator cannot be continued with those that run: ",
            adoption->reason)),
        ExitCode::kRestartMe);
  }
  if (status.ok()) {
    status = journal_->Begin(servers, newest_step_id, dispatcher_.get());
  }
  if (!status.ok()) {
    EndJob(status);
    return status;
  }
  const uint64_t generation = servers[0].generation;
  dispatcher_->SetGeneration(generation);
  servers_->Start();
  return generation;
}

absl::Status ClusterConnection::OpenVariables(uint64_t generation) {
  RemoteVariableStore::Options store;
  for (const TaskId task : options_.cluster.Tasks(TaskType::kPs)) {
    store.tasks.push_back(ChannelTo(task));
    store.tasks.back().target_incarnation = watch_->incarnation(task.index);
  }
  store.copy_count = options_.server_copy_count;
  store.serving_tasks = servers_->serving_tasks();
  store.partitioner = options_.partitioner;
  store.placement = options_.placement;
  store.timeout = options_.exchange_timeout;
  // A server that is silent for less is not lost.
  store.retry_for = options_.heartbeat_timeout;
  store.shared_memory = options_.shared_memory;
  store.generation = generation;
  store.gradients_per_step = std::max(1, options_.rounds.gradient_count);
  absl::StatusOr<std::unique_ptr<RemoteVariableStore>> variables =
      RemoteVariableStore::Open(network_, std::move(store));
  if (!variables.ok()) return WithLoss(variables.status());
  variables_ = *std::move(variables);
  StartRecovery(generation);
  return absl::OkStatus();
}

absl::Status ClusterConnection::AwaitTasks(
    const std::function<void(absl::string_view)>& report) {
  const absl::Status& failure = options_.failure;
  const absl::Duration timeout =
      failure.ok() ? options_.startup_timeout
                   : std::min(options_.startup_timeout, kEndAtStartTimeout);
  absl::Status started = missing_.Await(clock_->Now() + timeout, report);
  if (failure.ok() && started.ok()) return started;
  // Tasks that serve another coordinator are not ended when this one fails.
  const bool has_waited = started.ok() || absl::IsDeadlineExceeded(started);
  // A late task may have started when this process is restarted.
  if (absl::IsDeadlineExceeded(started)) {
    started = WithExitCode(started, ExitCode::kRestartMe);
  }
  GiveUpStart(has_waited && !failure.ok() ? failure : started);
  return failure.ok() ? started : failure;
}

ClusterConnection::ClusterConnection(const Options& options,
                                     std::unique_ptr<TrainingJournal> journal,
                                     Network* network, Clock* clock)
    : options_(options),
      network_(network),
      clock_(clock),
      job_id_(options.job_id),
      missing_(options.cluster, WorkersAndServers(options.cluster), clock,
               {.names = NameLookup::OfSystem(),
                .worker_count_min = options.worker_count_min}),
      journal_(std::move(journal)),
      held_(options.cluster.task_count(TaskType::kPs) /
            options.server_copy_count) {}

ClusterConnection::~ClusterConnection() {
  JobControl::OfProcess().SetDrainer(nullptr);
  {
    absl::MutexLock lock(&mutex_);
    recovery_for_changes_ = nullptr;
    servers_for_changes_ = nullptr;
  }
  status_source_ = nullptr;
  metrics_source_ = nullptr;
  // Destroyed before the objects that it calls: recovery calls all the others,
  // and the dispatcher asks the watch which servers are lost.
  store_ = nullptr;
  recovery_ = nullptr;
  servers_ = nullptr;
  variables_ = nullptr;
  journal_ = nullptr;
  dispatcher_ = nullptr;
  batches_ = nullptr;
  watch_ = nullptr;
}

ChannelOptions ClusterConnection::ChannelTo(TaskId task) const {
  ChannelOptions channel;
  channel.address = *options_.cluster.Address(task);
  channel.peer_task_type = std::string(TaskTypeName(task.type));
  channel.peer_task_index = task.index;
  channel.caller = options_.self;
  channel.job_id = job_id_;
  channel.coordinator_epoch = options_.coordinator_epoch;
  // The connection to a lost task must be closed soon, because another process
  // may run at the address, but not before the task counts as lost. Detection
  // takes twice the keepalive time.
  channel.keepalive = std::clamp(options_.heartbeat_timeout * 0.6,
                                 kKeepaliveMin, channel.keepalive);
  return channel;
}

void ClusterConnection::StartDispatcher() {
  std::vector<std::unique_ptr<Channel>> channels;
  for (const TaskId task : options_.cluster.Tasks(TaskType::kWorker)) {
    channels.push_back(network_->Connect(ChannelTo(task)));
  }
  ClosureDispatcher::Options dispatcher;
  dispatcher.cluster = options_.cluster;
  dispatcher.coordinator = absl::StrCat(options_.self.ToString(), " on host ",
                                        HostName(), ", process ", getpid());
  dispatcher.job_seed = options_.seed;
  dispatcher.closure_ids = options_.closure_ids;
  dispatcher.generation = options_.generation;
  dispatcher.queue.low_water_mark_max = journal_->identity().low_water_mark_max;
  dispatcher.coordinator_return_timeout = options_.coordinator_return_timeout;
  dispatcher.server_copy_count = options_.server_copy_count;
  dispatcher.serving_tasks = [this] {
    absl::MutexLock lock(&mutex_);
    return servers_for_changes_ == nullptr
               ? std::vector<int>()
               : servers_for_changes_->serving_tasks();
  };
  dispatcher.queue.runner_count = options_.closures_in_flight;
  dispatcher.queue.rounds = options_.rounds;
  dispatcher.queue.attempts_max = options_.attempts_per_closure_max;
  dispatcher.queue.queued_closures_max =
      static_cast<int>(options_.queued_closures_max);
  dispatcher.heartbeat_interval = options_.heartbeat_interval;
  dispatcher.heartbeat_timeout = options_.heartbeat_timeout;
  dispatcher_ = std::make_unique<ClosureDispatcher>(
      dispatcher, std::move(channels),
      [this](const absl::Status& status) { return Judge(status); }, &missing_,
      clock_);
}

Tensor ClusterConnection::ShareWithWorkers(const Tensor& tensor) {
  std::call_once(batches_offered_, [this] {
    if (!options_.shared_memory) return;
    std::vector<ChannelOptions> workers;
    for (const TaskId task : options_.cluster.Tasks(TaskType::kWorker)) {
      workers.push_back(ChannelTo(task));
    }
    batches_ = SharedBatches::Make(network_, workers);
    dispatcher_->SetSharedBatches(batches_.get());
  });
  return batches_ == nullptr ? tensor : batches_->Share(tensor);
}

void ClusterConnection::StartWatch() {
  std::vector<std::unique_ptr<Channel>> channels;
  for (const TaskId task : options_.cluster.Tasks(TaskType::kPs)) {
    channels.push_back(network_->Connect(ChannelTo(task)));
  }
  ServerWatch::Options watch;
  watch.cluster = options_.cluster;
  watch.ask_interval = options_.heartbeat_interval;
  watch.silence_timeout = options_.heartbeat_timeout;
  watch.coordinator_return_timeout = options_.coordinator_return_timeout;
  if (options_.server_copy_count > 1) {
    watch.has_copies = true;
    watch.ask_interval = std::min(watch.ask_interval, kCopyAskInterval);
    watch.reconnect_timeout = kCopyReconnectTimeout;
  }
  watch_ = std::make_unique<ServerWatch>(
      watch, std::move(channels), [this] { OnServerChange(); }, &missing_,
      clock_);
  const auto ps = [](int index) { return TaskId{TaskType::kPs, index}; };
  servers_ = std::make_unique<ServerCopies>(
      options_.server_copy_count,
      ServerCopies::Parts{
          .watch = watch_.get(),
          .timeline = &dispatcher_->timeline(),
          .connect =
              [this, ps](int task) {
                return network_->Connect(ChannelTo(ps(task)));
              },
          .address =
              [this, ps](int task) {
                return *options_.cluster.Address(ps(task));
              },
          .record =
              [this](const ServerCopies::Record& record) {
                return journal_->NoteCopies(record);
              },
          .on_change = [this] { OnServerChange(); },
          .on_failure =
              [this](const absl::Status& why) { dispatcher_->Abort(why); },
          .clock = clock_});
  absl::MutexLock lock(&mutex_);
  servers_for_changes_ = servers_.get();
}

void ClusterConnection::StartRecovery(uint64_t generation) {
  ServerRecovery::Options recovery = options_.recovery;
  recovery.generation = generation;
  recovery_ = std::make_unique<ServerRecovery>(
      recovery, ServerRecovery::Parts{.dispatcher = dispatcher_.get(),
                                      .servers = servers_.get(),
                                      .variables = variables_.get(),
                                      .journal = journal_.get(),
                                      .describe_variables =
                                          [this](int server) {
                                            absl::MutexLock lock(&mutex_);
                                            return held_[server].empty()
                                                       ? "the variables it held"
                                                       : held_[server];
                                          },
                                      .clock = clock_});
  store_ = std::make_unique<RecoverableStore>(
      variables_.get(), recovery_.get(),
      std::max(1, options_.rounds.gradient_count));
  {
    absl::MutexLock lock(&mutex_);
    recovery_for_changes_ = recovery_.get();
  }
  // A server may have been lost before recovery was created.
  recovery_->OnServerChange();
}

void ClusterConnection::OnServerChange() {
  absl::MutexLock lock(&mutex_);
  if (servers_for_changes_ != nullptr) servers_for_changes_->OnTaskChange();
  if (recovery_for_changes_ != nullptr) recovery_for_changes_->OnServerChange();
}

// A closure that could not reach a server is retried: servers apply its pushes
// once, however often they are sent. ServerWatch decides whether the server is
// lost. A closure may detect earlier that another process has replaced the
// server.
FailureVerdict ClusterConnection::Judge(const absl::Status& status) const {
  const auto failure = GetTaskFailure(status);
  if (!failure.has_value() || failure->task_type() != "ps") {
    return FailureVerdict::kFailure;
  }
  if (IsOfEarlierCoordinator(status)) return FailureVerdict::kFailure;
  if (IsForEarlierProcess(status)) return FailureVerdict::kRetry;
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
    // The server was restarted empty, and its loss has not been detected yet.
    case absl::StatusCode::kNotFound:
      return FailureVerdict::kRetry;
    case absl::StatusCode::kFailedPrecondition:
      return IsOfLostServer(*failure) ? FailureVerdict::kRetry
                                      : FailureVerdict::kFailure;
    default:
      return FailureVerdict::kFailure;
  }
}

bool ClusterConnection::IsOfLostServer(
    const proto::TaskFailure& failure) const {
  absl::MutexLock lock(&mutex_);
  return recovery_for_changes_ != nullptr &&
         (recovery_for_changes_->is_recovering() ||
          !recovery_for_changes_->IsHolder(
              servers_for_changes_->server_of(failure.task_index()),
              failure.incarnation()));
}

bool ClusterConnection::EndedByLostServer(const absl::Status& status) const {
  const std::optional<proto::TaskFailure> failure = GetTaskFailure(status);
  if (!failure.has_value() ||
      failure->task_type() != TaskTypeName(TaskType::kPs)) {
    return false;
  }
  if (absl::IsUnavailable(status) || IsOfEarlierGeneration(status)) return true;
  // A server refuses requests for its predecessor, and has no variables before
  // they are restored. With the variables of this job, either is a mistake of
  // the program, which a restart would repeat.
  return (absl::IsFailedPrecondition(status) || absl::IsNotFound(status)) &&
         (variables_ == nullptr || IsOfLostServer(*failure));
}

void ClusterConnection::NoteShards() {
  // A server that does not answer may hold shards.
  std::vector<int> counts(servers_->server_count(), 1);
  for (int server = 0; server < servers_->server_count(); ++server) {
    const auto described =
        servers_->channel(server).Call<proto::DescribeResponse>(
            kDescribeMethod, proto::DescribeRequest(),
            {.timeout = kDescribeTimeout});
    if (!described.ok()) continue;  // The watch reports a lost server.
    std::string names;
    const int count = described->shards_size();
    for (int i = 0; i < count && i < kListedShardsMax; ++i) {
      absl::StrAppend(&names, i == 0 ? ": " : ", ",
                      described->shards(i).spec().shard_name());
    }
    if (count > kListedShardsMax) absl::StrAppend(&names, ", ...");
    absl::MutexLock lock(&mutex_);
    counts[server] = count;
    held_[server] = absl::StrCat(count, " shards of variables, ",
                                 described->memory_bytes(), " bytes", names);
  }
  journal_->NoteShardCounts(std::move(counts));
}

void ClusterConnection::AddToTrace(TraceCollector* trace) const {
  for (const TaskId task : WorkersAndServers(options_.cluster)) {
    trace->Add(task.ToString(), network_->Connect(ChannelTo(task)));
  }
}

void ClusterConnection::Interrupt() {
  dispatcher_->Abort(absl::CancelledError("training was stopped by a signal"));
  recovery_->OnServerChange();
}

absl::Status ClusterConnection::WithLoss(const absl::Status& status) const {
  bool is_handing_over = false;
  {
    absl::MutexLock lock(&mutex_);
    is_handing_over = is_handing_over_;
  }
  if (is_handing_over && !status.ok()) {
    return WithExitCode(
        absl::AbortedError("this coordinator was drained, and the next one "
                           "continues the job"),
        ExitCode::kRestartMe);
  }
  const ExitCode code = ExitCodeOf(status);
  // A late task may have started when this process is restarted, and a lost
  // server may have returned.
  const bool lacks_tasks =
      (absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status)) &&
      LacksTasks(*dispatcher_, *servers_);
  if (code == ExitCode::kFailure &&
      (lacks_tasks || EndedByLostServer(status))) {
    return WithExitCode(status, ExitCode::kRestartMe);
  }
  const bool is_unsaved =
      (code == ExitCode::kTerminated || code == ExitCode::kInterrupted) &&
      !PreemptionNotice::OfProcess().was_handled();
  const std::string loss = is_unsaved ? recovery_->DescribeLoss() : "";
  if (loss.empty()) return status;
  return WithMessage(status, absl::StrCat(status.message(), "; ", loss));
}

}  // namespace muster
