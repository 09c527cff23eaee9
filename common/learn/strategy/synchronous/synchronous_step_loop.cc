#include "common/learn/strategy/synchronous/synchronous_step_loop.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/runtime/run_options.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/device.h"
#include "common/core/tensor/tensor_codec.h"
#include "common/learn/strategy/input/sharding_plan.h"
#include "common/learn/strategy/synchronous/group_operation.h"
#include "proto/group_view.pb.h"

namespace muster {
namespace {

bool HasReplicaOps(const Graph& graph) {
  return std::any_of(
      graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
        return BuiltinOps().FindOrPlain(node.op).reads == OpReads::kReplicas;
      });
}

std::vector<TensorType> ResultTypes(const Graph& graph) {
  std::vector<TensorType> types;
  for (const NodeOutput& result : graph.results) {
    types.push_back(graph.TypeOf(result));
  }
  return types;
}

// Returns the micro-batches of each rank; empty without micro-batches.
Leaves LeavesOf(int micro_batch_count, int rank_count) {
  Leaves leaves{.count = micro_batch_count};
  for (int rank = 0; rank < rank_count && micro_batch_count > 0; ++rank) {
    const Communicator::Range part =
        Communicator::PartOf(micro_batch_count, rank, rank_count);
    leaves.count_of_rank.push_back(static_cast<int>(part.end - part.begin));
  }
  return leaves;
}

}  // namespace

class SynchronousStepLoop::Step final : public GroupOperation {
 public:
  explicit Step(SynchronousStepLoop* loop) : loop_(*loop) {}

  absl::Status Run() override {
    ASSIGN_OR_RETURN(loop_.end_, loop_.RunWholeStep(loop_.request_));
    return absl::OkStatus();
  }

  std::string Result() const override {
    proto::StepResult result;
    result.set_had_data(loop_.end_.had_data);
    result.set_stop_requested(loop_.end_.stop_requested);
    result.set_is_last_step(loop_.end_.is_last_step);
    for (const Tensor& tensor : loop_.Results()) {
      *result.add_results() = EncodeTensor(tensor);
    }
    return result.SerializeAsString();
  }

  absl::Status Adopt(absl::string_view encoded) override {
    proto::StepResult result;
    if (!result.ParseFromString(std::string(encoded))) {
      return absl::InternalError("the result of a step is damaged");
    }
    loop_.end_ = {.had_data = result.had_data(),
                  .stop_requested = result.stop_requested(),
                  .is_last_step = result.is_last_step()};
    std::vector<Tensor>& tensors = loop_.adopted_results_.emplace();
    for (const proto::Tensor& tensor : result.results()) {
      ASSIGN_OR_RETURN(tensors.emplace_back(), DecodeTensor(tensor));
    }
    return absl::OkStatus();
  }

  bool changes_variables() const override {
    return loop_.kind_ == LoopKind::kTrain;
  }
  bool can_be_repeated() const override { return false; }

 private:
  SynchronousStepLoop& loop_;
};

absl::StatusOr<std::unique_ptr<StepLoop>> SynchronousStepLoop::Create(
    const Graph& step, const Dataset& dataset, LoopKind kind,
    ReplicaGroup* group, MirroredVariableStore* variables,
    const Options& options) {
  Options used = options;
  if (kind == LoopKind::kTrainOnBatch) kind = LoopKind::kTrain;
  // Evaluation is deterministic, too, because callbacks may use its results to
  // decide how training continues. Predictions need no micro-batches, because
  // each row is computed separately.
  if (kind == LoopKind::kPredict) used.deterministic_micro_batches = 0;
  used.input.exactly_once = kind != LoopKind::kTrain;
  ASSIGN_OR_RETURN(ShardingPlan plan, PlanData(dataset, kind, *group, used));
  LogPlan(plan);
  ASSIGN_OR_RETURN(const bool is_renewed, group->Renew());
  // The error may have occurred on some replicas before an update and on others
  // after it.
  if (is_renewed) variables->RequireSynchronization();
  auto loop = absl::WrapUnique(
      new SynchronousStepLoop(kind, group, variables, used, std::move(plan)));
  if (!group->is_joining()) RETURN_IF_ERROR(loop->Connect(step));
  if (group->survives_losses()) {
    loop->step_ = step;
    loop->data_ = dataset;
    loop->user_ = std::make_unique<ReplicaGroup::User>(
        group, [loop = loop.get()] { loop->Disconnect(); });
  }
  return loop;
}

absl::StatusOr<ShardingPlan> SynchronousStepLoop::PlanData(
    const Dataset& dataset, LoopKind kind, const ReplicaGroup& group,
    const Options& options) {
  InputPlacement placement = group.placement();
  placement.micro_batch_count = options.deterministic_micro_batches;
  InputOptions input = options.input;
  if (group.survives_losses() &&
      input.auto_shard_policy == AutoShardPolicy::kAuto) {
    input.auto_shard_policy = AutoShardPolicy::kData;
  }
  ASSIGN_OR_RETURN(ShardingPlan plan, PlanSharding({.dataset = dataset,
                                                    .placement = placement,
                                                    .options = input}));
  const bool divides_each_batch =
      kind != LoopKind::kTrain || group.worker_count() == 1 ||
      placement.micro_batch_count > 0 || plan.policy == AutoShardPolicy::kData;
  if (!group.survives_losses() || divides_each_batch) return plan;
  return absl::InvalidArgumentError(absl::StrCat(
      "--min_workers is set and auto_shard_policy is ",
      AutoShardPolicyName(plan.policy),
      "; the workers that are left after a loss can divide the lost one's rows "
      "only if all read the same data: use DATA"));
}

SynchronousStepLoop::SynchronousStepLoop(LoopKind kind, ReplicaGroup* group,
                                         MirroredVariableStore* variables,
                                         const Options& options,
                                         ShardingPlan plan)
    : kind_(kind), group_(group), variables_(variables), options_(options) {
  Distribute(std::move(plan));
}

void SynchronousStepLoop::Distribute(ShardingPlan plan) {
  dataset_.emplace(std::move(plan), options_.input);
}

absl::Status SynchronousStepLoop::Connect(const Graph& step) {
  communicators_ = group_->communicators();
  const int64_t batch_size = dataset_->plan().batch_size;
  for (int replica = 0; replica < group_->local_count(); ++replica) {
    RETURN_IF_ERROR(AddReplica(
        step, replica, static_cast<double>(std::max<int64_t>(1, batch_size))));
  }
  overlaps_steps_ =
      !group_->survives_losses() &&
      std::all_of(
          replicas_.begin(), replicas_.end(), [](const Replica& replica) {
            return replica.rows == nullptr && replica.step->overlaps_steps();
          });
  is_connected_ = true;
  return absl::OkStatus();
}

void SynchronousStepLoop::Disconnect() {
  is_connected_ = false;
  replicas_.clear();
  communicators_.clear();
  if (has_fixed_parts()) return;
  iterator_ = nullptr;
  batches_.clear();
}

absl::Status SynchronousStepLoop::Reconnect() {
  replicas_.clear();
  if (has_fixed_parts()) return Connect(step_);
  ASSIGN_OR_RETURN(ShardingPlan plan,
                   PlanData(data_, kind_, *group_, options_));
  Distribute(std::move(plan));
  RETURN_IF_ERROR(Connect(step_));
  return position_.element == 0 ? absl::OkStatus() : SeekTo(position_);
}

absl::Status SynchronousStepLoop::AddReplica(const Graph& step, int replica,
                                             double expected_weight) {
  Communicator* const communicator = communicators_[replica].get();
  const int micro_batch_count = options_.deterministic_micro_batches;
  Replica added;
  added.first_batch = replica;
  if (micro_batch_count > 0) {
    added.first_batch = static_cast<int>(
        Communicator::PartOf(micro_batch_count, communicator->rank(),
                             communicator->size())
            .begin);
  }
  ReplicaStep::Options options{
      .communicator = communicator,
      .variables = &variables_->copy(replica),
      .shares_variables = variables_->shares_variables(),
      .applies_updates = !variables_->shares_variables() || replica == 0,
      .shards_optimizer_state = variables_->shards_optimizer_state(),
      .bytes_per_pack = options_.communication.bytes_per_pack,
      .timeout = options_.communication.timeout,
      .overlaps = options_.overlaps_communication,
      .leaves = LeavesOf(micro_batch_count, communicator->size()),
      .survives_losses = group_->survives_losses(),
      .has_replica_ops = HasReplicaOps(step),
      .expected_weight = expected_weight};
  if (kind_ == LoopKind::kPredict) {
    if (communicator->size() > 1) {
      ASSIGN_OR_RETURN(added.rows,
                       ResultRows::Create(ResultTypes(step), communicator,
                                          options_.communication.timeout));
    }
  } else {
    options.result_types = ResultTypes(step);
  }
  ASSIGN_OR_RETURN(added.step, ReplicaStep::Create(std::move(options)));
  RETURN_IF_ERROR(CompileRunners(step, replica, &added));
  replicas_.push_back(std::move(added));
  return absl::OkStatus();
}

absl::Status SynchronousStepLoop::CompileRunners(const Graph& step, int replica,
                                                 Replica* added) {
  Device* const device = DeviceOf(options_.devices, replica);
  if (device != nullptr) {
    ASSIGN_OR_RETURN(added->stream, device->CreateStream());
  }
  for (int i = 0; i < added->step->executable_count(); ++i) {
    ASSIGN_OR_RETURN(
        added->runners.emplace_back().executable,
        CompileReplicaStep(
            step, added->step->variables(), options_.devices, replica,
            {.intra_op_thread_count = options_.intra_op_thread_count,
             .replica_link = added->step->link(i),
             .stream = added->stream.get()}));
  }
  return absl::OkStatus();
}

absl::StatusOr<StepLoop::Outcome> SynchronousStepLoop::Run(
    int64_t step_count_max, OnStep on_step) {
  RETURN_IF_ERROR(variables_->Synchronize());
  all_let_steps_overlap_ = false;
  absl::StatusOr<Outcome> outcome = RunSteps(step_count_max, on_step);
  DiscardSteps();
  return outcome;
}

absl::StatusOr<StepLoop::Outcome> SynchronousStepLoop::RunSteps(
    int64_t step_count_max, OnStep on_step) {
  Outcome outcome;
  absl::Status stop;  // If not OK, the reason why this worker stops.
  // The loop finishes unfinished steps before it returns this error.
  absl::Status drawn;
  bool has_batches = true;
  while (true) {
    const bool wants_more =
        drawn.ok() && has_batches && !outcome.was_told_to_stop &&
        outcome.step_count + unfinished_count_ < step_count_max;
    if (wants_more && MayBegin()) {
      ReplicaStep::StepRequest request = ReplicaStep::StepRequest::kContinue;
      if (is_to_stop_ && is_to_stop_()) {
        request = ReplicaStep::StepRequest::kStopAfter;
      }
      if (stop.ok()) {
        const absl::StatusOr<bool> found = DrawBatches();
        drawn = found.status();
        has_batches = found.ok() && *found;
        if (!has_batches) continue;
      } else {
        request = ReplicaStep::StepRequest::kStop;
        EmptyBatches();
      }
      RETURN_IF_ERROR(BeginStep(request));
      continue;
    }
    if (unfinished_count_ == 0) break;
    ASSIGN_OR_RETURN(const StepEnd end, FinishStep());
    if (end.stop_requested || !end.had_data) {
      Rewind();
      if (end.stop_requested && !stop.ok()) return stop;
      outcome.was_stopped = end.stop_requested;
      outcome.end_of_data = !end.stop_requested;
      return outcome;
    }
    // Step numbers never restart, so that every step draws different random
    // numbers.
    ++position_.step;
    ++position_.element;
    ++outcome.step_count;
    outcome.was_told_to_stop = end.is_last_step;
    Note("between steps");
    if (!stop.ok()) continue;
    const absl::Status status = on_step(Results());
    if (status.ok()) continue;
    const bool is_last_step =
        end.is_last_step || outcome.step_count == step_count_max;
    if (!MustInformOtherWorkers(status, is_last_step)) {
      position_.step += unfinished_count_;
      return status;
    }
    stop = status;
  }
  RETURN_IF_ERROR(stop);
  if (!drawn.ok()) {
    // Other workers would wait for this one.
    if (group_->worker_count() > 1) group_->Abort(drawn);
    return drawn;
  }
  if (!has_batches) {
    Rewind();
    outcome.end_of_data = true;
  }
  return outcome;
}

bool SynchronousStepLoop::MayBegin() const {
  if (unfinished_count_ == 0) return true;
  if (!overlaps_steps_ || unfinished_count_ >= Executable::kStartedMax) {
    return false;
  }
  // All workers must agree on which steps begin before which others are
  // finished.
  return group_->worker_count() > 1
             ? all_let_steps_overlap_
             : !is_to_stop_ && may_overlap_ && may_overlap_(unfinished_count_);
}

bool SynchronousStepLoop::LetsStepsOverlap() const {
  return overlaps_steps_ && !is_to_stop_ && may_overlap_ &&
         may_overlap_(unfinished_count_ + 2);
}

bool SynchronousStepLoop::MustInformOtherWorkers(const absl::Status& status,
                                                 bool is_last_step) {
  if (group_->worker_count() == 1) return false;
  if (absl::IsCancelled(status)) return !is_last_step;
  group_->Abort(status);
  return false;
}

void SynchronousStepLoop::Note(const char* activity) const {
  if (options_.note_activity) options_.note_activity(activity, position_.step);
}

absl::StatusOr<bool> SynchronousStepLoop::DrawBatches() {
  Note("reading input");
  if (!is_connected_) RETURN_IF_ERROR(Reconnect());
  if (iterator_ == nullptr) {
    ASSIGN_OR_RETURN(iterator_, dataset_->MakeIterator(position_.pass));
  }
  ASSIGN_OR_RETURN(const bool has_batches, iterator_->Next(&batches_));
  return has_batches || dataset_->plan().continues_at_end;
}

void SynchronousStepLoop::EmptyBatches() {
  for (ReplicaBatch& batch : batches_) {
    batch.example_count = 0;
    for (Tensor& component : batch.element) {
      component = component.SliceRows(0, 0);
    }
  }
}

void SynchronousStepLoop::Rewind() {
  iterator_ = nullptr;
  ++position_.pass;
  position_.element = 0;
}

absl::Status SynchronousStepLoop::Seek(const StepPosition& position) {
  if (!is_connected_) RETURN_IF_ERROR(Reconnect());
  return SeekTo(position);
}

absl::Status SynchronousStepLoop::SeekTo(const StepPosition& position) {
  ASSIGN_OR_RETURN(iterator_, dataset_->MakeIterator(position.pass));
  for (int64_t i = 0; i < position.element; ++i) {
    Note("reading input up to where training continues");
    ASSIGN_OR_RETURN(const bool has_batches, iterator_->Next(&batches_));
    // One of several workers may have less data than the others.
    if (has_batches || dataset_->plan().continues_at_end) continue;
    return TooFewBatches(position.element, i);
  }
  position_ = position;
  return absl::OkStatus();
}

absl::Status SynchronousStepLoop::BeginStep(ReplicaStep::StepRequest request) {
  if (group_->survives_losses()) {
    request_ = request;
    ++unfinished_count_;
    return absl::OkStatus();
  }
  Note("computing a step");
  RETURN_IF_ERROR(
      group_->Run([&](int replica) { return BeginReplica(replica, request); }));
  ++unfinished_count_;
  return absl::OkStatus();
}

absl::Status SynchronousStepLoop::BeginReplica(
    int replica, ReplicaStep::StepRequest request) {
  Replica& own = replicas_[replica];
  ReplicaStep& step = *own.step;
  RETURN_IF_ERROR(step.Begin(request, LetsStepsOverlap()));
  RETURN_IF_ERROR(
      step.RunLeaves([&](int leaf) { return RunLeaf(&own, leaf); }));
  if (own.rows == nullptr) return step.Commit();
  return own.rows->Gather(own.runners.front().results,
                          batches_[own.first_batch].example_count > 0);
}

absl::Status SynchronousStepLoop::RunLeaf(Replica* replica, int leaf) {
  ReplicaStep& step = *replica->step;
  Runner& runner = replica->runners[replica->runners.size() == 1 ? 0 : leaf];
  const ReplicaBatch& batch = batches_[replica->first_batch + leaf];
  const bool has_data = batch.example_count > 0;
  const bool is_run = has_data || step.MustRun();
  const RunOptions options{
      .step_seed = static_cast<uint64_t>(position_.step + unfinished_count_),
      .example_offset = batch.example_offset};
  step.BeginLeaf(leaf, has_data);
  if (!step.overlaps_steps()) {
    if (is_run) {
      RETURN_IF_ERROR(
          runner.executable->Run(batch.element, options, &runner.results));
    }
    return step.EndLeaf(leaf, runner.results);
  }
  replica->has_started.push_back(is_run);
  if (!is_run) return step.EndLeaf(leaf, {});
  RETURN_IF_ERROR(runner.executable->Start(batch.element, options));
  return step.EndLeaf(leaf, runner.executable->StartedResults());
}

absl::StatusOr<SynchronousStepLoop::StepEnd> SynchronousStepLoop::FinishStep() {
  if (group_->survives_losses()) {
    unfinished_count_ = 0;
    Step step(this);
    RETURN_IF_ERROR(group_->Complete(step));
    return end_;
  }
  RETURN_IF_ERROR(
      group_->Run([&](int replica) { return FinishReplica(replica); }));
  --unfinished_count_;
  return EndOfStep();
}

absl::StatusOr<SynchronousStepLoop::StepEnd> SynchronousStepLoop::RunWholeStep(
    ReplicaStep::StepRequest request) {
  if (!is_connected_) {
    const absl::Status redrawn =
        has_fixed_parts() ? Reconnect() : RedrawBatches(request);
    if (!redrawn.ok()) {
      group_->Abort(redrawn);
      return redrawn;
    }
  }
  Note("computing a step");
  RETURN_IF_ERROR(group_->Run([&](int replica) -> absl::Status {
    RETURN_IF_ERROR(BeginReplica(replica, request));
    return FinishReplica(replica);
  }));
  adopted_results_.reset();
  return EndOfStep();
}

absl::Status SynchronousStepLoop::RedrawBatches(
    ReplicaStep::StepRequest request) {
  RETURN_IF_ERROR(DrawBatches().status());
  if (request == ReplicaStep::StepRequest::kStop) EmptyBatches();
  return absl::OkStatus();
}

SynchronousStepLoop::StepEnd SynchronousStepLoop::EndOfStep() {
  const Replica& first = replicas_.front();
  if (first.rows != nullptr) {
    return {.had_data = first.rows->contributor_count() > 0};
  }
  const ReplicaStep::Outcome& outcome = first.step->outcome();
  all_let_steps_overlap_ = outcome.all_let_steps_overlap;
  return {.had_data = outcome.leaves_with_data > 0,
          .stop_requested = outcome.stop_requested,
          .is_last_step = outcome.is_last_step};
}

absl::Status SynchronousStepLoop::FinishReplica(int replica) {
  Replica& own = replicas_[replica];
  if (!own.has_started.empty()) {
    const bool has_started = own.has_started.front();
    own.has_started.pop_front();
    Runner& runner = own.runners.front();
    // The replica's own error has priority, because it names the data.
    if (has_started && runner.executable->started_count() > 0) {
      RETURN_IF_ERROR(runner.executable->Finish(&runner.results));
    }
  }
  return own.step->Await();
}

void SynchronousStepLoop::DiscardSteps() {
  for (; unfinished_count_ > 0; --unfinished_count_) {
    (void)group_->Run([&](int replica) { return FinishReplica(replica); });
  }
}

absl::Span<const Tensor> SynchronousStepLoop::Results() const {
  if (adopted_results_.has_value()) return *adopted_results_;
  const Replica& first = replicas_.front();
  return first.rows == nullptr ? first.step->results() : first.rows->results();
}

}  // namespace muster
