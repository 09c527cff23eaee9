#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/core/system/metrics.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/job_control.h"
#include "common/net/rpc/identity.h"
#include "common/net/status/status_report.h"
#include "coordinator/closure_dispatcher.h"
#include "coordinator/cluster_connection.h"

// What operators see of a ClusterConnection, and what they ask of it: metrics,
// status, and the drain of a worker.
namespace muster {
namespace {

constexpr MetricInfo kQueued = {"muster_closures_queued",
                                "Closures that wait for a worker."};
constexpr MetricInfo kInFlight = {"muster_closures_in_flight",
                                  "Closures that workers hold."};
constexpr MetricInfo kDone = {"muster_closures_done_total",
                              "Closures that have finished."};
constexpr MetricInfo kRetried = {
    "muster_closures_retried_total",
    "Closures that were queued again because their worker was lost."};
constexpr MetricInfo kBusySeconds = {"muster_closures_busy_seconds_total",
                                     "Time that workers spent in closures."};
constexpr MetricInfo kLost = {"muster_peers_lost_total",
                              "How often a task was lost."};
constexpr MetricInfo kReturned = {"muster_peers_returned_total",
                                  "How often a lost task reconnected."};
constexpr MetricInfo kConnected = {
    "muster_peer_connected", "1 if the task is connected to this one, else 0."};
constexpr MetricInfo kRollbacks = {
    "muster_rollbacks_total",
    "How often training was rolled back after a parameter server was lost."};
constexpr MetricInfo kRestored = {
    "muster_servers_restored_total",
    "Parameter servers that were started again with their state, or whose copy "
    "took over."};

}  // namespace

void ClusterConnection::AddMetrics(MetricSink* sink) const {
  const ClosureDispatcher::Counters closures = dispatcher_->counters();
  const ServerWatch::Counters servers = watch_->counters();
  sink->AddGauge(kQueued, static_cast<double>(closures.queued_count));
  sink->AddGauge(kInFlight, static_cast<double>(closures.in_flight_count));
  sink->AddCounter(kDone, static_cast<double>(closures.finished_count));
  sink->AddCounter(kRetried, static_cast<double>(closures.requeued_count));
  sink->AddCounter(kBusySeconds, absl::ToDoubleSeconds(closures.busy));
  const auto add = [sink](const char* role, int64_t lost, int64_t returned) {
    sink->AddCounter(kLost, static_cast<double>(lost), {{"peer_role", role}});
    sink->AddCounter(kReturned, static_cast<double>(returned),
                     {{"peer_role", role}});
  };
  add("worker", closures.lost_count, closures.recovered_count);
  add("ps", servers.lost_count, servers.returned_count);
  StatusReport report;
  dispatcher_->AddStatus(&report);
  watch_->AddStatus(&report);
  for (const TaskStatus& task : report.tasks) {
    const bool is_connected = task.state == TaskStatus::State::kConnected;
    sink->AddGauge(kConnected, is_connected ? 1 : 0, {{"peer", task.task}});
  }
  absl::MutexLock lock(&mutex_);
  if (recovery_for_changes_ == nullptr) return;
  sink->AddCounter(
      kRollbacks, static_cast<double>(recovery_for_changes_->recovery_count()));
  sink->AddCounter(
      kRestored, static_cast<double>(recovery_for_changes_->restored_count()));
}

void ClusterConnection::AddStatus(StatusReport* report) const {
  dispatcher_->AddStatus(report);
  watch_->AddStatus(report);
  const std::string missing = missing_.Describe();
  absl::MutexLock lock(&mutex_);
  if (recovery_for_changes_ != nullptr) {
    report->readiness.push_back(absl::OkStatus());
  } else {
    report->readiness.push_back(absl::UnavailableError(
        missing.empty() ? "connecting to the parameter servers"
                        : absl::StrCat("waiting for ", missing)));
  }
}

void ClusterConnection::Drain(TaskId task, JobControl::Done done) {
  absl::Status refusal;
  if (task.type == TaskType::kChief) {
    const absl::Status handed_over = HandOver();
    if (handed_over.ok()) return done(std::string());
    refusal = handed_over;
  } else if (task.type != TaskType::kWorker) {
    refusal = absl::FailedPreconditionError(absl::StrCat(
        "cannot drain ", task.ToString(), ": only workers can leave a running ",
        "job. To move variables to other servers, stop the job and start it "
        "again on the new cluster from a checkpoint"));
  } else if (task.index < 0 || task.index >= dispatcher_->worker_count()) {
    refusal = absl::NotFoundError(
        absl::StrCat("there is no ", task.ToString(), "; the workers are 0 to ",
                     dispatcher_->worker_count() - 1));
  } else {
    // Exactly one of the two calls below happens.
    const auto shared = std::make_shared<JobControl::Done>(std::move(done));
    refusal = dispatcher_->DrainWorker(task.index,
                                       [shared] { (*shared)(std::string()); });
    if (!refusal.ok()) (*shared)(refusal);
    return;
  }
  done(refusal);
}

absl::Status ClusterConnection::HandOver() {
  RETURN_IF_ERROR(journal_->CheckContinuable());
  {
    absl::MutexLock lock(&mutex_);
    is_handing_over_ = true;
  }
  LOG(INFO) << "this coordinator ends; workers and parameter servers wait "
            << absl::FormatDuration(options_.coordinator_return_timeout)
            << " for the next one";
  Interrupt();
  return absl::OkStatus();
}

std::vector<std::string> ClusterConnection::DescribeTasks() const {
  std::vector<std::string> lines;
  const auto add = [&](TaskId task, uint64_t incarnation) {
    lines.push_back(
        absl::StrCat(task.ToString(), " ", *options_.cluster.Address(task),
                     " incarnation ", IncarnationString(incarnation)));
  };
  for (const TaskId task : options_.cluster.Tasks(TaskType::kWorker)) {
    add(task, dispatcher_->worker_incarnation(task.index));
  }
  for (const TaskId task : options_.cluster.Tasks(TaskType::kPs)) {
    add(task, watch_->incarnation(task.index));
  }
  return lines;
}

}  // namespace muster
