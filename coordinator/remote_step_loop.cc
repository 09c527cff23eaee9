#include "coordinator/remote_step_loop.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/compute/graph/graph_codec.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "coordinator/closure_arguments.h"
#include "coordinator/per_worker_dataset.h"
#include "coordinator/training_journal.h"
#include "worker/client/step_signature.h"
#include "worker/client/worker_protocol.h"

namespace muster {

absl::StatusOr<std::unique_ptr<RemoteStepLoop>> RemoteStepLoop::Create(
    std::shared_ptr<ClusterConnection> connection, const Graph& step,
    const Dataset& dataset, const Options& options, Clock* clock) {
  ASSIGN_OR_RETURN(
      ShardingPlan plan,
      PlanSharding(
          {.path = BatchPath::kCopied,
           .dataset = dataset,
           .placement = {.worker_count =
                             connection->dispatcher().worker_count()}}));
  LogPlan(plan);
  std::unique_ptr<RemoteStepLoop> loop(new RemoteStepLoop(
      std::move(connection), step, plan.step_count, options, clock));
  std::string graph = SerializeGraph(FeedFromIterator(step));
  loop->graph_fingerprint_ = GraphFingerprint(graph);
  loop->work_.function_id =
      loop->connection_->dispatcher().AddFunction(step.name, std::move(graph));
  RETURN_IF_ERROR(loop->OpenIterators(std::move(plan)));
  loop->connection_->NoteShards();
  ServerRecovery& recovery = loop->connection_->recovery();
  loop->loop_id_ = recovery.AddLoop(loop.get());
  RETURN_IF_ERROR(recovery.CheckCheckpointDir());
  recovery.SaveIfDue(/*at_once=*/true);
  return loop;
}

RemoteStepLoop::RemoteStepLoop(std::shared_ptr<ClusterConnection> connection,
                               const Graph& step, int64_t pass_step_count,
                               const Options& options, Clock* clock)
    : connection_(std::move(connection)),
      options_(options),
      pass_step_count_(pass_step_count),
      synchronous_(connection_.get(), step),
      scheduled_(&connection_->dispatcher(), options.waits, clock) {
  work_.is_synchronous = synchronous_.is_on();
  const auto continued = connection_->journal().ContinuedPlace();
  if (continued.has_value()) steps_into_pass_ = continued->steps_into_pass;
}

RemoteStepLoop::~RemoteStepLoop() {
  if (loop_id_ != 0) connection_->recovery().RemoveLoop(loop_id_);
  const absl::Status status = scheduled_.Abandon();
  if (!status.ok()) {
    LOG(WARNING) << "a training loop ended with an error: " << status.message();
  }
}

absl::StatusOr<StepLoop::Outcome> RemoteStepLoop::Run(int64_t step_count_max,
                                                      OnStep on_step) {
  Outcome outcome;
  RETURN_IF_ERROR(PassKeptResults(step_count_max, on_step, &outcome));
  int64_t scheduled_count = outcome.step_count;
  TrainingJournal& journal = connection_->journal();
  bool has_begun = false;
  while (true) {
    connection_->recovery().SaveIfDue();
    if (!scheduled_.empty()) {
      RETURN_IF_ERROR(journal.NoteProgress(PlaceOfResults(),
                                           scheduled_.front_closure_id()));
    }
    if (is_to_stop_ && is_to_stop_()) {
      RETURN_IF_ERROR(FinishBegun(on_step, &outcome));
      return outcome;
    }
    while (scheduled_count < step_count_max &&
           (pass_step_count_ < 0 || steps_into_pass_ < pass_step_count_) &&
           scheduled_.step_count() < options_.steps_ahead_max) {
      int64_t step_count = std::min<int64_t>(steps_per_closure_,
                                             step_count_max - scheduled_count);
      if (pass_step_count_ >= 0) {
        step_count = std::min(step_count, pass_step_count_ - steps_into_pass_);
      }
      if (!has_begun) RETURN_IF_ERROR(BeginRun());
      has_begun = true;
      RETURN_IF_ERROR(Schedule(static_cast<int>(step_count)));
      scheduled_count += step_count;
      steps_into_pass_ += step_count;
    }
    if (scheduled_.empty()) break;
    ASSIGN_OR_RETURN(const ScheduledSteps::Results results,
                     scheduled_.TakeFront());
    synchronous_.NoteFinished();
    if (const absl::Status status = HandOver(results, on_step, &outcome);
        !status.ok()) {
      scheduled_.Abandon().IgnoreError();
      return status;
    }
  }
  if (outcome.step_count < step_count_max) {
    outcome.end_of_data = true;
    steps_into_pass_ = 0;
  }
  return outcome;
}

absl::Status RemoteStepLoop::BeginRun() {
  TrainingJournal& journal = connection_->journal();
  std::optional<int> open_round_gradients;
  if (const auto continued = journal.ContinuedPlace(); continued.has_value()) {
    open_round_gradients = continued->open_round_gradients;
  }
  RETURN_IF_ERROR(synchronous_.BeginRun(open_round_gradients));
  return journal.BeginRun(PlaceOfResults());
}

absl::Status RemoteStepLoop::HandOver(const ScheduledSteps::Results& results,
                                      OnStep on_step, Outcome* outcome) {
  const absl::Span<const Tensor> tensors = results.tensors;
  const size_t tensors_per_step = tensors.size() / results.step_count;
  for (int i = 0; i < results.step_count; ++i) {
    ++outcome->step_count;
    RETURN_IF_ERROR(
        on_step(tensors.subspan(i * tensors_per_step, tensors_per_step)));
  }
  return absl::OkStatus();
}

absl::Status RemoteStepLoop::FinishBegun(OnStep on_step, Outcome* outcome) {
  RETURN_IF_ERROR(scheduled_.Settle());
  while (!scheduled_.empty()) {
    const int step_count = scheduled_.front_work().step_count;
    ASSIGN_OR_RETURN(const std::optional<ScheduledSteps::Results> results,
                     scheduled_.TakeSettled());
    if (results.has_value()) {
      RETURN_IF_ERROR(HandOver(*results, on_step, outcome));
    } else {
      steps_into_pass_ -= step_count;
    }
  }
  outcome->was_told_to_stop = true;
  return absl::OkStatus();
}

absl::Status RemoteStepLoop::PassKeptResults(int64_t step_count_max,
                                             OnStep on_step, Outcome* outcome) {
  while (!kept_.empty() && outcome->step_count < step_count_max) {
    const ScheduledSteps::Results results{std::move(kept_.front()), 1};
    kept_.pop_front();
    RETURN_IF_ERROR(HandOver(results, on_step, outcome));
  }
  return absl::OkStatus();
}

std::shared_ptr<const void> RemoteStepLoop::OnSnapshot() {
  auto state = std::make_shared<SnapshotState>();
  state->kept = kept_;
  for (const ScheduledSteps::Results& results : scheduled_.Finished()) {
    const size_t tensors_per_step = results.tensors.size() / results.step_count;
    for (int i = 0; i < results.step_count; ++i) {
      const auto begin = results.tensors.begin() + i * tensors_per_step;
      state->kept.emplace_back(begin, begin + tensors_per_step);
    }
  }
  state->steps_into_pass = PlaceOfResults().steps_into_pass;
  return state;
}

TrainingJournal::Place RemoteStepLoop::PlaceOfResults() const {
  return {.graph_fingerprint = graph_fingerprint_,
          .steps_per_closure = steps_per_closure_,
          .steps_into_pass = steps_into_pass_ - scheduled_.step_count() -
                             static_cast<int64_t>(kept_.size()),
          .open_round_gradients = synchronous_.open_round_gradients()};
}

void RemoteStepLoop::OnRollback(const void* state) {
  // The rollback has cancelled them with all other closures.
  scheduled_.Forget();
  kept_.clear();
  steps_into_pass_ = 0;
  if (state == nullptr) return;
  const auto* const snapshot = static_cast<const SnapshotState*>(state);
  kept_ = snapshot->kept;
  steps_into_pass_ =
      snapshot->steps_into_pass + static_cast<int64_t>(snapshot->kept.size());
}

void RemoteStepLoop::GroupSteps(int steps_per_start) {
  if (synchronous_.is_on()) return;
  steps_per_closure_ = std::clamp<int>(steps_per_start, 1, kStepsPerClosureMax);
}

std::optional<DurationHistogram> RemoteStepLoop::StepDurations() const {
  return connection_->dispatcher().StepDurations(work_.function_id);
}

absl::Status RemoteStepLoop::OpenIterators(ShardingPlan plan) {
  if (options_.prefetch_batch_count > 0) {
    plan.dataset = plan.dataset.Prefetch(options_.prefetch_batch_count);
  }
  ASSIGN_OR_RETURN(IteratorRecord record, EncodePerWorker({plan}));
  auto arguments = std::make_shared<ClosureArguments>();
  arguments->arguments.push_back(
      {.iterator_id =
           connection_->dispatcher().AddIterator(std::move(record))});
  work_.arguments = std::move(arguments);
  return absl::OkStatus();
}

absl::Status RemoteStepLoop::Schedule(int step_count) {
  work_.step_count = step_count;
  return scheduled_.Add(work_);
}

}  // namespace muster
