#include "common/learn/strategy/replica/replica_runner.h"

#include <algorithm>
#include <utility>

#include "common/compute/runtime/run_options.h"
#include "common/core/base/status_macros.h"

namespace muster {

ReplicaRunner::ReplicaRunner(ReplicaGroup* group,
                             MirroredVariableStore* mirrored,
                             ReplicaVariables* single, const Options& options)
    : group_(group),
      mirrored_(mirrored),
      single_(single),
      options_(options),
      communicators_(group->communicators()) {
  if (!group->survives_losses()) return;
  user_ = std::make_unique<ReplicaGroup::User>(group, [this] {
    absl::MutexLock lock(&mutex_);
    compiled_.clear();
    communicators_.clear();
  });
}

absl::StatusOr<std::vector<PerReplica>> ReplicaRunner::Run(
    const StepFunction& step, const Call& call) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(Prepare());
  ASSIGN_OR_RETURN(Compiled* const compiled, FindCompiled(step, call.types));
  const uint64_t step_seed = run_count_++;
  RETURN_IF_ERROR(group_->Run([&](int r) -> absl::Status {
    Replica& replica = compiled->replicas[r];
    RETURN_IF_ERROR(replica.step->Begin(ReplicaStep::StepRequest::kContinue));
    replica.step->BeginLeaf(0, call.has_data[r]);
    const RunOptions options{.step_seed = step_seed,
                             .example_offset = call.example_offsets[r]};
    RETURN_IF_ERROR(
        replica.executable->Run(call.arguments[r], options, &replica.results));
    RETURN_IF_ERROR(replica.step->EndLeaf(0, {}));
    return replica.step->Finish();
  }));
  std::vector<PerReplica> results;
  for (size_t i = 0; i < compiled->replicas[0].results.size(); ++i) {
    std::vector<Tensor> values;
    for (Replica& replica : compiled->replicas) {
      values.push_back(std::move(replica.results[i]));
    }
    results.emplace_back(std::move(values));
  }
  return results;
}

absl::Status ReplicaRunner::Prepare() {
  // The error may have occurred on some replicas before an update and on others
  // after it.
  ASSIGN_OR_RETURN(const bool is_renewed, group_->Renew());
  if (is_renewed && mirrored_ != nullptr) mirrored_->RequireSynchronization();
  ReplicaGroup::Communicators communicators = group_->communicators();
  if (communicators != communicators_) {
    compiled_.clear();
    communicators_ = std::move(communicators);
  }
  return mirrored_ == nullptr ? absl::OkStatus() : mirrored_->Synchronize();
}

absl::StatusOr<ReplicaRunner::Compiled*> ReplicaRunner::FindCompiled(
    const StepFunction& step, absl::Span<const TensorType> types) {
  const auto found = std::find_if(
      compiled_.begin(), compiled_.end(), [&](const Compiled& compiled) {
        return compiled.function.id() == step.id() && compiled.types == types;
      });
  if (found != compiled_.end()) {
    compiled_.splice(compiled_.begin(), compiled_, found);
    return &compiled_.front();
  }
  ASSIGN_OR_RETURN(Compiled compiled, Compile(step, types));
  if (compiled_.size() == static_cast<size_t>(options_.function_count_max)) {
    compiled_.pop_back();
  }
  compiled_.push_front(std::move(compiled));
  return &compiled_.front();
}

absl::StatusOr<ReplicaRunner::Compiled> ReplicaRunner::Compile(
    const StepFunction& step, absl::Span<const TensorType> types) {
  ASSIGN_OR_RETURN(const Graph graph, step.TraceFor(types, group_->size()));
  Compiled compiled{
      .function = step, .types = {types.begin(), types.end()}, .replicas = {}};
  for (int replica = 0; replica < group_->local_count(); ++replica) {
    ASSIGN_OR_RETURN(compiled.replicas.emplace_back(),
                     CompileReplica(graph, replica));
  }
  return compiled;
}

absl::StatusOr<ReplicaRunner::Replica> ReplicaRunner::CompileReplica(
    const Graph& graph, int replica) const {
  const bool shares = mirrored_ != nullptr && mirrored_->shares_variables();
  Replica made;
  ASSIGN_OR_RETURN(
      made.step,
      ReplicaStep::Create(
          {.communicator = communicators_[replica].get(),
           .variables =
               mirrored_ == nullptr ? single_ : &mirrored_->copy(replica),
           .shares_variables = shares,
           .applies_updates = !shares || replica == 0,
           .shards_optimizer_state =
               mirrored_ != nullptr && mirrored_->shards_optimizer_state(),
           .bytes_per_pack = options_.communication.bytes_per_pack,
           .timeout = options_.communication.timeout,
           .overlaps = options_.overlaps_communication,
           .leaves = {},
           .result_types = {}}));
  ASSIGN_OR_RETURN(made.executable,
                   CompileReplicaStep(
                       graph, made.step->variables(), options_.devices, replica,
                       {.intra_op_thread_count = options_.intra_op_thread_count,
                        .replica_link = made.step->link()}));
  return made;
}

}  // namespace muster
