#include "coordinator/dispatched_step_loop.h"

#include <utility>

#include "common/compute/graph/graph_codec.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/core/tensor/tensor.h"
#include "coordinator/closure_arguments.h"
#include "coordinator/closure_dispatcher.h"
#include "worker/client/step_signature.h"

namespace muster {
namespace {

size_t SizeBytes(const ClosureArguments& batch) {
  size_t size_bytes = 0;
  for (const ClosureArgument& argument : batch.arguments) {
    size_bytes += argument.tensors[0].size_bytes();
  }
  return size_bytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DispatchedStepLoop>> DispatchedStepLoop::Create(
    std::shared_ptr<ClusterConnection> connection, const Graph& step,
    const Dataset& dataset, LoopKind kind, const Options& options,
    Clock* clock) {
  ASSIGN_OR_RETURN(ShardingPlan plan, PlanSharding({.dataset = dataset}));
  if (options.prefetch_batch_count > 0) {
    plan.dataset = plan.dataset.Prefetch(options.prefetch_batch_count);
  }
  std::unique_ptr<DispatchedStepLoop> loop(new DispatchedStepLoop(
      std::move(connection), step, std::move(plan), kind, options, clock));
  loop->function_id_ = loop->connection_->dispatcher().AddFunction(
      step.name, SerializeGraph(FeedFromTensors(step)));
  loop->connection_->NoteShards();
  if (kind == LoopKind::kTrainOnBatch) {
    ServerRecovery& recovery = loop->connection_->recovery();
    loop->loop_id_ = recovery.AddLoop(loop.get());
    RETURN_IF_ERROR(recovery.CheckCheckpointDir());
    recovery.SaveIfDue(/*at_once=*/true);
  }
  return loop;
}

DispatchedStepLoop::DispatchedStepLoop(
    std::shared_ptr<ClusterConnection> connection, const Graph& step,
    ShardingPlan plan, LoopKind kind, const Options& options, Clock* clock)
    : connection_(std::move(connection)),
      plan_(std::move(plan)),
      kind_(kind),
      options_(options),
      synchronous_(connection_.get(), step),
      scheduled_(&connection_->dispatcher(), options.waits, clock) {}

DispatchedStepLoop::~DispatchedStepLoop() {
  if (loop_id_ != 0) connection_->recovery().RemoveLoop(loop_id_);
  const absl::Status status = scheduled_.Abandon();
  if (!status.ok()) {
    LOG(WARNING) << "a loop of steps ended with an error: " << status.message();
  }
}

absl::StatusOr<StepLoop::Outcome> DispatchedStepLoop::Run(
    int64_t step_count_max, OnStep on_step) {
  if (kind_ == LoopKind::kTrainOnBatch) {
    RETURN_IF_ERROR(connection_->journal().NoteObstacle(
        "steps on batches of the coordinator"));
    RETURN_IF_ERROR(synchronous_.BeginRun(std::nullopt));
  }
  absl::StatusOr<Outcome> outcome = RunSteps(step_count_max, on_step);
  if (!outcome.ok()) {
    scheduled_.Abandon().IgnoreError();
    Forget();
  }
  return outcome;
}

std::optional<DurationHistogram> DispatchedStepLoop::StepDurations() const {
  return connection_->dispatcher().StepDurations(function_id_);
}

absl::StatusOr<StepLoop::Outcome> DispatchedStepLoop::RunSteps(
    int64_t step_count_max, OnStep on_step) {
  Outcome outcome;
  int64_t scheduled_count = 0;
  while (true) {
    if (kind_ == LoopKind::kTrainOnBatch) connection_->recovery().SaveIfDue();
    // Runs at least one step, so that a caller that repeats the call makes
    // progress.
    if (outcome.step_count > 0 && is_to_stop_ && is_to_stop_()) {
      RETURN_IF_ERROR(FinishBegun(on_step, &outcome));
      return outcome;
    }
    while (!(pass_has_ended_ && unstarted_batches_.empty()) &&
           scheduled_count < step_count_max && MayAdd()) {
      ASSIGN_OR_RETURN(const bool has_batch, AddBatch());
      if (has_batch) ++scheduled_count;
    }
    if (scheduled_.empty()) {
      outcome.end_of_data = std::exchange(pass_has_ended_, false);
      return outcome;
    }
    const size_t front_bytes = SizeBytes(*scheduled_.front_work().arguments);
    ASSIGN_OR_RETURN(const ScheduledSteps::Results results,
                     scheduled_.TakeFront());
    bytes_ahead_ -= front_bytes;
    ++outcome.step_count;
    RETURN_IF_ERROR(on_step(results.tensors));
  }
}

bool DispatchedStepLoop::MayAdd() const {
  const int64_t count = scheduled_.step_count();
  if (count == 0 || count < options_.batches_ahead_min) return true;
  // Drawing a batch may take longer than a step. If a result is ready, it is
  // taken before another batch is drawn.
  return count < options_.batches_ahead_max &&
         bytes_ahead_ < options_.bytes_ahead_max && !scheduled_.is_front_done();
}

absl::Status DispatchedStepLoop::FinishBegun(OnStep on_step, Outcome* outcome) {
  RETURN_IF_ERROR(scheduled_.Settle());
  std::deque<std::shared_ptr<const ClosureArguments>> put_back;
  while (!scheduled_.empty()) {
    const auto batch = scheduled_.front_work().arguments;
    ASSIGN_OR_RETURN(const std::optional<ScheduledSteps::Results> results,
                     scheduled_.TakeSettled());
    bytes_ahead_ -= SizeBytes(*batch);
    if (results.has_value()) {
      ++outcome->step_count;
      RETURN_IF_ERROR(on_step(results->tensors));
    } else {
      put_back.push_back(batch);
    }
  }
  unstarted_batches_.insert(unstarted_batches_.begin(), put_back.begin(),
                            put_back.end());
  outcome->was_told_to_stop = true;
  return absl::OkStatus();
}

absl::StatusOr<bool> DispatchedStepLoop::AddBatch() {
  if (!unstarted_batches_.empty()) {
    const auto batch = std::move(unstarted_batches_.front());
    unstarted_batches_.pop_front();
    RETURN_IF_ERROR(Schedule(batch));
    return true;
  }
  if (iterator_ == nullptr) {
    ASSIGN_OR_RETURN(iterator_, plan_.MakeIterator(pass_));
  }
  Element batch;
  ASSIGN_OR_RETURN(const bool has_batch, iterator_->Next(&batch));
  if (!has_batch) {
    iterator_ = nullptr;
    ++pass_;
    pass_has_ended_ = true;
    return false;
  }
  auto arguments = std::make_shared<ClosureArguments>();
  for (Tensor& component : batch) {
    arguments->arguments.emplace_back().tensors.push_back(
        connection_->ShareWithWorkers(component));
  }
  RETURN_IF_ERROR(Schedule(std::move(arguments)));
  return true;
}

absl::Status DispatchedStepLoop::Schedule(
    std::shared_ptr<const ClosureArguments> batch) {
  bytes_ahead_ += SizeBytes(*batch);
  const bool trains = kind_ == LoopKind::kTrainOnBatch;
  return scheduled_.Add({.function_id = function_id_,
                         .arguments = std::move(batch),
                         .has_effects = trains,
                         .is_synchronous = trains && synchronous_.is_on()});
}

void DispatchedStepLoop::Forget() {
  scheduled_.Forget();
  bytes_ahead_ = 0;
  unstarted_batches_.clear();
  pass_has_ended_ = false;
  iterator_ = nullptr;
}

}  // namespace muster
