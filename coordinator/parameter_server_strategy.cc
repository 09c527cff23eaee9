#include "coordinator/parameter_server_strategy.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/core/system/wait_line.h"
#include "common/learn/strategy/local_step_loop.h"
#include "common/net/status/job_trace.h"
#include "common/net/status/trace_collector.h"
#include "coordinator/cluster_connection.h"
#include "coordinator/dispatched_step_loop.h"
#include "coordinator/remote_step_loop.h"

namespace muster {
namespace {

absl::StatusOr<UpdateRounds::Options> RoundsOf(
    const ParameterServerStrategyOptions& options, const ClusterSpec& cluster) {
  const int worker_count = cluster.task_count(TaskType::kWorker);
  const int backup_count = options.backup_worker_count;
  if (!options.is_synchronous && backup_count != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("backup_workers is ", backup_count,
                     "; expected 0, because training is not synchronous"));
  }
  if (backup_count < 0 || backup_count >= std::max(1, worker_count)) {
    return absl::InvalidArgumentError(
        absl::StrCat("backup_workers is ", backup_count,
                     "; expected 0 or more, and fewer than the ", worker_count,
                     " workers of the cluster"));
  }
  if (!options.is_synchronous) return UpdateRounds::Options();
  return UpdateRounds::Options{.gradient_count = worker_count - backup_count,
                               .backup_count = backup_count};
}

}  // namespace

absl::StatusOr<std::unique_ptr<ParameterServerStrategy>>
ParameterServerStrategy::Create(Task& task,
                                const ParameterServerStrategyOptions& options) {
  ClusterConnection::Options connection_options;
  connection_options.cluster = task.options().config.cluster;
  connection_options.self = task.identity();
  connection_options.seed = task.seed();
  connection_options.closures_in_flight = options.closures_in_flight;
  ASSIGN_OR_RETURN(connection_options.rounds,
                   RoundsOf(options, task.options().config.cluster));
  connection_options.partitioner = options.partitioner;
  connection_options.placement = options.placement;
  connection_options.heartbeat_timeout = options.heartbeat_timeout;
  connection_options.attempts_per_closure_max = options.attempts_per_step_max;
  connection_options.startup_timeout = task.options().startup_timeout;
  connection_options.failure = task.failure();
  connection_options.worker_count_min = options.min_workers;
  connection_options.server_copy_count = options.server_copy_count;
  connection_options.shared_memory = task.options().shared_memory;
  connection_options.recovery.return_timeout =
      task.options().server_return_timeout;
  connection_options.recovery.recovery_count_max =
      task.options().recovery_count_max;
  connection_options.recovery.checkpoint_dir = options.checkpoint_dir;
  connection_options.recovery.checkpoint_interval = options.checkpoint_interval;
  connection_options.coordinator_return_timeout =
      task.options().coordinator_return_timeout;
  connection_options.journal_dir = CoordinatorJournalDir(task.options());
  task.NoteConnecting();
  std::optional<WaitLine> wait(std::in_place);
  ASSIGN_OR_RETURN(
      std::shared_ptr<ClusterConnection> connection,
      ClusterConnection::Open(
          connection_options, task.network(), Clock::Real(),
          [&wait](absl::string_view line) { LOG(INFO) << *wait << line; }));
  wait.reset();
  JobTrace::OfProcess().SetOthers(
      [connection](TraceCollector* trace) { connection->AddToTrace(trace); });
  task.OnJobEnd([](const absl::Status& status) {
    JobTrace::OfProcess().SetOthers(nullptr);
    return status;
  });
  task.OnJobEnd([connection](const absl::Status& status) {
    const absl::Status end = connection->WithLoss(status);
    connection->EndJob(end);
    return end;
  });
  task.OnInterrupt([connection] { connection->Interrupt(); });
  return std::make_unique<ParameterServerStrategy>(std::move(connection),
                                                   options, Clock::Real());
}

ParameterServerStrategy::ParameterServerStrategy(
    std::shared_ptr<ClusterConnection> connection,
    const ParameterServerStrategyOptions& options, Clock* clock)
    : connection_(std::move(connection)),
      options_(options),
      clock_(clock),
      sole_worker_(connection_->journal().shared_seed()) {}

VariableStore& ParameterServerStrategy::variables() {
  return connection_->variables();
}

TrainingRecovery* ParameterServerStrategy::recovery() {
  return &connection_->recovery();
}

absl::StatusOr<std::unique_ptr<StepLoop>> ParameterServerStrategy::CreateLoop(
    const Graph& step, const Dataset& dataset, LoopKind kind) {
  if (kind == LoopKind::kTrain && options_.dispatches_batches) {
    kind = LoopKind::kTrainOnBatch;
  }
  if (kind == LoopKind::kTrain) {
    return RemoteStepLoop::Create(
        connection_, step, dataset,
        {.prefetch_batch_count = options_.prefetch_batch_count}, clock_);
  }
  if (kind == LoopKind::kTrainOnBatch || !options_.evaluates_on_coordinator) {
    const int batches_ahead_min = 2 * connection_->dispatcher().worker_count() *
                                  std::max(1, options_.closures_in_flight);
    return DispatchedStepLoop::Create(connection_, step, dataset, kind,
                                      {.batches_ahead_min = batches_ahead_min},
                                      clock_);
  }
  return LocalStepLoop::Create(step, dataset, &connection_->variables(),
                               {.prefetch_batch_count = 2});
}

StrategyReport ParameterServerStrategy::Report() const {
  const ClosureDispatcher::Counters counters =
      connection_->dispatcher().counters();
  return {.retry_count = counters.requeued_count,
          .recovery_count = counters.recovered_count +
                            connection_->recovery().recovery_count() +
                            connection_->recovery().restored_count(),
          .tasks = connection_->DescribeTasks(),
          .timeline = connection_->dispatcher().timeline().status()};
}

}  // namespace muster
