#include "common/net/collectives/peers/peer_group.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/status_message.h"
#include "common/core/system/log.h"
#include "common/core/system/metrics.h"
#include "common/net/collectives/peers/admission.h"
#include "common/net/collectives/peers/formation.h"
#include "common/net/collectives/peers/hang_report.h"
#include "common/net/collectives/peers/hang_watch.h"
#include "common/net/collectives/peers/peer_links.h"
#include "common/net/collectives/transports/transport_choice.h"
#include "common/net/collectives/transports/transports.h"

namespace muster {
namespace {

// How long the server's shutdown waits for streams to finish and refusals to be
// sent.
constexpr absl::Duration kServerGrace = absl::Milliseconds(500);

// Connections tolerate silence for longer than heartbeats take to declare a
// task lost, because they resume by themselves when packets get through again.
// The limit is a day, which operating systems accept.
constexpr double kSilenceMargin = 1.5;
constexpr absl::Duration kSilenceTimeoutMax = absl::Hours(24);

// The maximal number of ranks that an error lists if the missing ranks are not
// known.
constexpr int kNamedRanksMax = 8;

constexpr MetricInfo kLost = {"muster_peers_lost_total",
                              "How often a task was lost."};
constexpr MetricInfo kConnected = {
    "muster_peer_connected", "1 if the task is connected to this one, else 0."};
constexpr MetricInfo kStragglerSeconds = {
    "muster_straggler_seconds_total",
    "Time for which collectives of this task have waited for another task, "
    "sampled at heartbeats."};

absl::Duration NoticeTime(const PeerGroup::Options& options) {
  return options.heartbeat_timeout + 2 * options.heartbeat_interval;
}

absl::Duration AtLeastSilenceTimeout(const PeerGroup::Options& options,
                                     absl::Duration minimum) {
  return std::clamp(kSilenceMargin * NoticeTime(options), minimum,
                    kSilenceTimeoutMax);
}

TransportSettings TransportsOf(const PeerGroup::Options& options) {
  TransportSettings settings = options.transports;
  settings.silence_timeout =
      AtLeastSilenceTimeout(options, settings.silence_timeout);
  return settings;
}

PeerLinks::Options LinkOptions(const PeerGroup::Options& options) {
  PeerLinks::Options links;
  links.self.task = options.config.task;
  links.self.incarnation = options.identity.incarnation;
  links.self.view = options.view;
  links.ends_when_closed = options.ends_when_closed;
  links.self.address = options.listen_address;
  links.self.cluster = options.config.cluster;
  links.self.replicas_per_task = options.replicas_per_task;
  links.self.digest = options.digest;
  links.self.transports = OfferTransports(options.transports);
  links.self.failure = options.failure;
  links.health.heartbeat_interval = options.heartbeat_interval;
  links.health.heartbeat_timeout = options.heartbeat_timeout;
  links.occupied_timeout = 2 * options.heartbeat_timeout;
  links.keepalive = AtLeastSilenceTimeout(options, links.keepalive);
  return links;
}

std::string Count(int count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

}  // namespace

absl::StatusOr<std::unique_ptr<PeerGroup>> PeerGroup::Join(
    const Options& options, Network* network, Clock* clock,
    std::vector<TaskId>* missing) {
  RETURN_IF_ERROR(CheckOptions(options));
  RETURN_IF_ERROR(CheckImplementation(options));
  std::unique_ptr<PeerGroup> group(new PeerGroup(options, network, clock));
  const absl::Status formed = group->Form();
  if (!formed.ok()) {
    if (missing != nullptr) *missing = group->MissingTasks();
    absl::MutexLock lock(&group->mutex_);
    group->has_left_ = true;
    return formed;
  }
  return group;
}

absl::Status PeerGroup::CheckOptions(const Options& options) {
  RETURN_IF_ERROR(CheckMultiWorkerCluster(options.config));
  const std::vector<TaskId> tasks = GroupTasks(options.config.cluster);
  const TaskId self = options.config.task;
  if (std::find(tasks.begin(), tasks.end(), self) == tasks.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        self.ToString(), " is none of the tasks that train together: ",
        options.config.cluster.ToString()));
  }
  const std::vector<TaskId> workers =
      options.config.cluster.Tasks(TaskType::kWorker);
  if (options.view == 0 && !workers.empty() &&
      workers.back().index != static_cast<int>(workers.size()) - 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "synchronous training needs every worker from 0 on; the cluster is ",
        options.config.cluster.ToString()));
  }
  if (options.identity.incarnation == 0) {
    return absl::InvalidArgumentError("this process has no incarnation");
  }
  if (options.replicas_per_task < 1) {
    return absl::InvalidArgumentError(absl::StrCat("replicas_per_task is ",
                                                   options.replicas_per_task,
                                                   "; expected at least 1"));
  }
  return absl::OkStatus();
}

PeerGroup::PeerGroup(const Options& options, Network* network, Clock* clock)
    : options_(options),
      network_(network),
      clock_(clock),
      admission_check_(options.identity),
      links_(std::make_unique<PeerLinks>(LinkOptions(options),
                                         static_cast<PeerListener*>(this),
                                         network, clock)),
      life_(links_.get(), clock),
      hangs_(std::make_unique<HangWatch>(options.hang_report_interval,
                                         options.replicas_per_task,
                                         links_.get(), &life_, clock)),
      transport_(options.identity, network, TransportsOf(options)),
      formation_(std::make_unique<Formation>(
          Formation::Options{
              .cluster = options.config.cluster,
              .replicas_per_task = options.replicas_per_task,
              .implementation = options.implementation,
              .implementation_is_required = options.implementation_is_required,
              .report_interval = options.report_interval,
              .connect_timeout = options.connect_timeout,
              .failure = options.failure,
              .last_generation = options.last_generation},
          links_.get(), &transport_,
          [this](const GroupPlan& plan) { life_.Begin(plan); }, clock)),
      states_(links_->task_count(), {.since = clock->Now()}),
      metrics_source_([this](MetricSink* sink) { AddMetrics(sink); }),
      status_source_([this](StatusReport* report) { AddStatus(report); }) {}

int PeerGroup::task_rank() const { return links_->rank(); }
int PeerGroup::task_count() const { return links_->task_count(); }

void PeerGroup::NoteActivity(const char* activity, uint64_t step) {
  hangs_->NoteActivity(activity, step);
}

PeerGroup::~PeerGroup() {
  Disconnect();
  // Destroyed before the server, because lanes may be streams of the server.
  communicators_.clear();
  if (server_ != nullptr) server_->Shutdown(kServerGrace);
}

void PeerGroup::Close() {
  Disconnect();
  if (server_ != nullptr) server_->Shutdown(kServerGrace);
}

void PeerGroup::Disconnect() {
  bool has_left = false;
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(is_disconnected_, true)) return;
    has_left = has_left_;
  }
  if (!has_left) {
    Leave(absl::AbortedError("it ended without having left its group"),
          absl::ZeroDuration())
        .IgnoreError();
  }
  links_->Stop();
  life_.Adopt({});
  hangs_->Adopt({});
}

std::vector<PeerGroup::Absence> PeerGroup::Absences() const {
  const std::optional<int> failed = life_.failed_rank();
  absl::MutexLock lock(&mutex_);
  std::vector<Absence> absences;
  for (int rank = 0; rank < task_count(); ++rank) {
    const PeerState& peer = states_[rank];
    if (peer.state == TaskStatus::State::kLost || rank == failed) {
      absences.push_back(
          {.task = links_->task(rank), .is_silent = peer.is_silent});
    }
  }
  return absences;
}

std::vector<TaskId> PeerGroup::MissingTasks() const {
  absl::MutexLock lock(&mutex_);
  std::vector<TaskId> missing;
  for (int rank = 0; rank < task_count(); ++rank) {
    if (rank != task_rank() &&
        states_[rank].state != TaskStatus::State::kConnected) {
      missing.push_back(links_->task(rank));
    }
  }
  return missing;
}

absl::Status PeerGroup::CheckImplementation(const Options& options) {
  if (!options.implementation_is_required) return absl::OkStatus();
  const TransportChoice alone = ChooseTransport(
      options.implementation, {OfferTransports(options.transports)},
      options.replicas_per_task);
  if (alone.transport != nullptr) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(options.config.task.ToString(),
                                               ": ", alone.reason,
                                               "; use RING or AUTO"));
}

absl::Status PeerGroup::Form() {
  links_->AddTo(&methods_);
  transport_.AddTo(&methods_);
  if (options_.add_methods != nullptr) options_.add_methods(&methods_);
  ServerOptions listening = {.address = options_.listen_address};
  listening.keepalive = AtLeastSilenceTimeout(options_, listening.keepalive);
  absl::StatusOr<std::unique_ptr<Server>> server =
      network_->Listen(listening, &methods_, &admission_check_);
  if (!server.ok()) {
    RETURN_IF_ERROR(links_->FindDuplicateTask());
    return server.status();
  }
  server_ = *std::move(server);
  links_->Start();
  {
    WaitLine wait;
    ASSIGN_OR_RETURN(FormedGroup group,
                     formation_->Run(clock_->Now() + options_.startup_timeout,
                                     WaitReport(&wait)));
    Adopt(std::move(group));
  }
  {
    absl::MutexLock lock(&mutex_);
    is_formed_ = true;
  }
  // The line is the same for all tasks, so only the chief reports it.
  if (task_rank() == 0) {
    Report(absl::StrCat(Describe(), " (", plan_.transport_reason, ")"));
  }
  return absl::OkStatus();
}

void PeerGroup::Adopt(FormedGroup group) {
  plan_ = std::move(group.plan);
  std::vector<Communicator*> to_abort;
  std::vector<const Communicator*> to_watch;
  for (auto& communicator : group.communicators) {
    to_abort.push_back(communicator.get());
    to_watch.push_back(communicator.get());
    communicators_.push_back(std::make_unique<GroupCommunicator>(
        std::move(communicator),
        [this](absl::string_view attempted, const CollectiveProgress& progress,
               const absl::Status& status) {
          return Explain(attempted, progress, status);
        }));
  }
  life_.Adopt(std::move(to_abort));
  hangs_->Adopt(std::move(to_watch));
}

std::string PeerGroup::Describe() const {
  const int chief_count = options_.config.cluster.task_count(TaskType::kChief);
  const int worker_count =
      options_.config.cluster.task_count(TaskType::kWorker);
  std::vector<std::string> tasks;
  if (chief_count > 0) tasks.push_back("chief");
  if (worker_count > 0) tasks.push_back(Count(worker_count, "worker"));
  const absl::string_view implementation =
      CommunicationImplementationName(plan_.transport->implementation());
  const std::string transport = plan_.transport->name();
  return absl::StrCat(
      absl::StrJoin(tasks, " and "), ", ", Count(replica_count(), "replica"),
      "; ", implementation,
      transport == implementation ? "" : absl::StrCat(" over ", transport));
}

absl::Status PeerGroup::Leave(const absl::Status& status,
                              absl::Duration timeout) {
  {
    absl::MutexLock lock(&mutex_);
    has_left_ = true;
  }
  WaitLine wait;
  return life_.Leave(status, clock_->Now() + timeout, options_.report_interval,
                     WaitReport(&wait));
}

absl::Status PeerGroup::Explain(absl::string_view attempted,
                                const CollectiveProgress& progress,
                                const absl::Status& status) {
  // A connection may break a moment before it is known which task is lost, so
  // wait for that cause.
  const bool is_wire = absl::IsUnavailable(status) || absl::IsAborted(status) ||
                       absl::IsCancelled(status);
  const absl::Status cause =
      life_.AwaitCause(is_wire ? NoticeTime(options_) : absl::ZeroDuration());
  if (!cause.ok()) {
    return WithMessage(
        cause, absl::StrCat(attempted, " was ended: ", cause.message()));
  }
  // Errors of transports name only ranks. Add the tasks.
  std::vector<int> ranks = progress.missing_ranks;
  for (int rank = 0; progress.missing_ranks.empty() && rank < replica_count() &&
                     rank < kNamedRanksMax;
       ++rank) {
    ranks.push_back(rank);
  }
  std::vector<std::string> names;
  for (const int rank : ranks) {
    if (rank < 0 || rank >= replica_count()) continue;
    names.push_back(
        DescribeRank(rank, options_.replicas_per_task, hangs_->TaskNames()));
  }
  const absl::Status own = WithMessage(
      status, absl::StrCat(
                  attempted, ": ", status.message(),
                  progress.missing_ranks.empty() ? "; among " : "; not there: ",
                  absl::StrJoin(names, ", ")));
  life_.Fail(own);
  return own;
}

void PeerGroup::SetState(int rank, TaskStatus::State state,
                         absl::string_view problem) {
  absl::MutexLock lock(&mutex_);
  PeerState& peer = states_[rank];
  // A lost task stays lost: no other process is accepted in its place.
  if (peer.state == TaskStatus::State::kLost) return;
  if (peer.state != state) peer.since = clock_->Now();
  if (state == TaskStatus::State::kLost) ++lost_count_;
  peer.state = state;
  peer.problem = std::string(problem);
}

void PeerGroup::AddMetrics(MetricSink* sink) const {
  StatusReport ignored;
  const std::vector<HangWatch::Waited> waited = hangs_->AddWaits(&ignored);
  absl::MutexLock lock(&mutex_);
  sink->AddCounter(kLost, static_cast<double>(lost_count_),
                   {{"peer_role", "worker"}});
  for (int rank = 0; rank < task_count(); ++rank) {
    if (rank == task_rank()) continue;
    const MetricLabels labels = {{"peer", links_->task(rank).ToString()}};
    const bool is_connected =
        states_[rank].state == TaskStatus::State::kConnected;
    sink->AddGauge(kConnected, is_connected ? 1 : 0, labels);
    const bool is_sampled = rank < static_cast<int>(waited.size());
    sink->AddCounter(kStragglerSeconds,
                     is_sampled ? absl::ToDoubleSeconds(waited[rank].total) : 0,
                     labels);
  }
}

void PeerGroup::AddStatus(StatusReport* report) const {
  const std::vector<HangWatch::Waited> waited = hangs_->AddWaits(report);
  std::vector<TaskStatus> tasks(task_count());
  for (int rank = 0; rank < task_count(); ++rank) {
    tasks[rank].task = links_->task(rank).ToString();
    const auto hello = links_->hello(rank);
    if (!hello.has_value()) continue;
    tasks[rank].address = hello->address();
    tasks[rank].incarnation = hello->incarnation();
  }
  const absl::Status cause = life_.cause();
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> missing;
  for (int rank = 0; rank < task_count(); ++rank) {
    TaskStatus& task = tasks[rank];
    const PeerState& peer = states_[rank];
    const bool is_self = rank == task_rank();
    task.state = is_self ? TaskStatus::State::kConnected : peer.state;
    task.in_state = clock_->Now() - peer.since;
    task.problem = peer.problem;
    if (!is_self && is_formed_ && rank < static_cast<int>(waited.size())) {
      task.waited_share = waited[rank].recent_share;
    }
    if (task.state != TaskStatus::State::kConnected) {
      missing.push_back(task.task);
    }
    report->tasks.push_back(std::move(task));
  }
  report->readiness.push_back(
      !cause.ok()  ? cause
      : is_formed_ ? absl::OkStatus()
                   : absl::UnavailableError(absl::StrCat(
                         "waiting for ", missing.empty()
                                             ? "the group to form"
                                             : absl::StrJoin(missing, ", "))));
}

void PeerGroup::OnPresent(int rank) {
  SetState(rank, TaskStatus::State::kConnected, "");
  formation_->OnPresent(rank);
  life_.OnBack(rank);
}

void PeerGroup::OnMissing(int rank, absl::string_view reason) {
  bool has_left = false;
  {
    absl::MutexLock lock(&mutex_);
    // In a formed group, only a peer that has left is reported missing.
    has_left = is_formed_;
  }
  if (has_left) {
    SetState(rank, TaskStatus::State::kEnded, "");
  } else {
    SetState(rank, TaskStatus::State::kConnecting, reason);
  }
  formation_->OnMissing(rank, reason);
  life_.OnGone(rank);
}

void PeerGroup::OnLost(int rank, const absl::Status& why) {
  SetState(rank, TaskStatus::State::kLost, why.message());
  const bool is_silent = links_->SilenceOf(rank).has_value();
  {
    absl::MutexLock lock(&mutex_);
    states_[rank].is_silent = is_silent;
  }
  life_.OnLost(rank, why);
}

void PeerGroup::OnRefused(const absl::Status& why) {
  formation_->OnRefused(why);
}

void PeerGroup::OnFailureDelivered(int rank) {
  formation_->OnFailureDelivered(rank);
}

void PeerGroup::OnMessage(int rank, const proto::PeerMessage& message) {
  formation_->OnMessage(rank, message);
  if (!life_.IsOfGroup(message)) return;
  life_.OnMessage(rank, message);
  hangs_->OnMessage(rank, message);
}

void PeerGroup::Report(absl::string_view line) const {
  if (options_.report != nullptr) {
    options_.report(line);
  } else {
    LOG(INFO) << line;
  }
}

std::function<void(absl::string_view)> PeerGroup::WaitReport(
    WaitLine* wait) const {
  if (options_.report != nullptr) return options_.report;
  return [wait](absl::string_view line) { LOG(INFO) << *wait << line; };
}

void PeerGroup::OnTick() {
  const std::string line = hangs_->OnTick();
  if (!line.empty()) Report(line);
  const absl::Status hopeless =
      hangs_->CheckAwaitedTasksHaveNotLeft(options_.heartbeat_timeout);
  if (!hopeless.ok()) life_.Fail(hopeless);
}

}  // namespace muster
