#include "coordinator/cluster_coordinator.h"

#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/compute/graph/graph_codec.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/io/checkpoint/checkpoint_manager.h"
#include "coordinator/closure_arguments.h"
#include "coordinator/closure_dispatcher.h"
#include "coordinator/closure_queue.h"
#include "coordinator/cluster_connection.h"
#include "coordinator/per_worker_dataset.h"

namespace muster {
namespace {

constexpr absl::Duration kDefaultTimeout = absl::Hours(1);

// Callers pass deadlines as absl::Now() + x, but waits use the monotonic clock.
absl::Duration TimeLeft(std::optional<absl::Time> deadline) {
  return deadline.has_value() ? *deadline - absl::Now() : kDefaultTimeout;
}

absl::Time ToClock(std::optional<absl::Time> deadline) {
  return Clock::Real()->Now() + TimeLeft(deadline);
}

}  // namespace

ClusterCoordinator::ClusterCoordinator(ParameterServerStrategy& strategy)
    : connection_(strategy.connection()) {}

absl::StatusOr<RemoteValue> ClusterCoordinator::Schedule(
    const Function& function, const std::vector<FunctionArgument>& arguments,
    std::optional<absl::Time> deadline) {
  if (connection_->options().rounds.gradient_count > 0) {
    return absl::UnimplementedError(
        "the strategy is synchronous, and closures of custom loops do not take "
        "part in its updates: train with Fit(), or asynchronously");
  }
  ASSIGN_OR_RETURN(ClosureWork work, MakeWork(function, arguments));
  RETURN_IF_ERROR(
      connection_->journal().NoteObstacle("closures of a custom loop"));
  return connection_->dispatcher().Schedule(std::move(work),
                                            TimeLeft(deadline));
}

absl::Status ClusterCoordinator::Join(std::optional<absl::Time> deadline) {
  return connection_->dispatcher().Join(ToClock(deadline));
}

absl::StatusOr<bool> ClusterCoordinator::Done() {
  return connection_->dispatcher().Done();
}

absl::StatusOr<Tensor> ClusterCoordinator::Fetch(
    const RemoteValue& value, std::optional<absl::Time> deadline) {
  ASSIGN_OR_RETURN(std::vector<Tensor> results, FetchAll(value, deadline));
  if (results.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("closure ", value.closure_id(), " returned ",
                     results.size(), " tensors; use FetchAll()"));
  }
  return std::move(results[0]);
}

absl::StatusOr<std::vector<Tensor>> ClusterCoordinator::FetchAll(
    const RemoteValue& value, std::optional<absl::Time> deadline) {
  return connection_->dispatcher().Fetch(value, ToClock(deadline));
}

absl::StatusOr<std::vector<Tensor>> ClusterCoordinator::Fetch(
    absl::Span<const RemoteValue> values, std::optional<absl::Time> deadline) {
  std::vector<Tensor> results;
  for (const RemoteValue& value : values) {
    ASSIGN_OR_RETURN(Tensor result, Fetch(value, deadline));
    results.push_back(std::move(result));
  }
  return results;
}

void ClusterCoordinator::Cancel(const RemoteValue& value) {
  if (value.valid()) connection_->dispatcher().Cancel(value.closure_id());
}

void ClusterCoordinator::CancelAll() { connection_->dispatcher().CancelAll(); }

absl::StatusOr<PerWorker<Iterator>> ClusterCoordinator::CreatePerWorkerDataset(
    const Dataset& dataset) {
  return AddIterator({.dataset = dataset}, /*plan_count=*/1);
}

absl::StatusOr<PerWorker<Iterator>> ClusterCoordinator::CreatePerWorkerDataset(
    const WorkerDatasetFunction& make) {
  return AddIterator({.function = make}, /*plan_count=*/worker_count());
}

absl::StatusOr<PerWorker<Iterator>> ClusterCoordinator::AddIterator(
    ShardingRequest request, int plan_count) {
  request.path = BatchPath::kMadePerWorker;
  std::vector<ShardingPlan> plans;
  for (int w = 0; w < plan_count; ++w) {
    request.placement = {.worker_count = worker_count(), .worker_index = w};
    ASSIGN_OR_RETURN(plans.emplace_back(), PlanSharding(request));
    LogPlan(plans.back());
  }
  ASSIGN_OR_RETURN(IteratorRecord record, EncodePerWorker(plans));
  return PerWorker<Iterator>(
      connection_->dispatcher().AddIterator(std::move(record)),
      std::move(plans[0].element_types));
}

void ClusterCoordinator::OnRollback(
    std::function<void(const RollbackReport&)> handler) {
  connection_->recovery().SetHandler(std::move(handler));
}

absl::StatusOr<std::string> ClusterCoordinator::SaveCheckpoint(
    const std::string& folder) {
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointManager> manager,
                   CheckpointManager::Create({.folder = folder}));
  ASSIGN_OR_RETURN(const std::string prefix, manager->NextPrefix());
  VariableStore& variables = connection_->variables();
  const int shard_count = variables.checkpoint_shard_count();
  if (absl::Status saved = variables.SaveShards(prefix, shard_count);
      !saved.ok()) {
    manager->Abandon(prefix, shard_count);
    return saved;
  }
  RETURN_IF_ERROR(manager->Publish(prefix, shard_count));
  return prefix;
}

int ClusterCoordinator::worker_count() const {
  return connection_->dispatcher().worker_count();
}

absl::StatusOr<ClosureWork> ClusterCoordinator::MakeWork(
    const Function& function, const std::vector<FunctionArgument>& arguments) {
  ClosureWork work;
  bool is_new = false;
  ASSIGN_OR_RETURN(work.function_id,
                   function.Resolve(arguments, [&](const Graph& graph) {
                     is_new = true;
                     return connection_->dispatcher().AddFunction(
                         graph.name, SerializeGraph(graph));
                   }));
  // The variables of the function exist after Resolve().
  if (is_new) connection_->NoteShards();
  if (arguments.empty()) return work;
  auto made = std::make_shared<ClosureArguments>();
  made->arguments.reserve(arguments.size());
  for (const FunctionArgument& argument : arguments) {
    ClosureArgument& closure_argument = made->arguments.emplace_back();
    if (const auto* iterator = std::get_if<PerWorker<Iterator>>(&argument)) {
      closure_argument.iterator_id = iterator->iterator_id();
    } else if (const auto* values = std::get_if<PerWorker<Tensor>>(&argument)) {
      if (static_cast<int>(values->values().size()) != worker_count()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "a per-worker value has ", values->values().size(),
            " elements, and there are ", worker_count(), " workers"));
      }
      closure_argument.tensors = values->values();
    } else {
      closure_argument.tensors = {std::get<Tensor>(argument)};
    }
  }
  work.arguments = std::move(made);
  return work;
}

}  // namespace muster
