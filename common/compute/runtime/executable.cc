#include "common/compute/runtime/executable.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/functional/bind_front.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_verifier.h"
#include "common/compute/kernels/cuda/step_gate.h"
#include "common/compute/runtime/attention_fusion.h"
#include "common/compute/runtime/elementwise_fusion.h"
#include "common/compute/runtime/graph_rewrites.h"
#include "common/compute/runtime/image_fusion.h"
#include "common/compute/runtime/matmul_fusion.h"
#include "common/compute/runtime/placement.h"
#include "common/compute/runtime/plan.h"
#include "common/compute/runtime/plan_builder.h"
#include "common/compute/runtime/replica_kernels.h"
#include "common/compute/runtime/scan_unrolling.h"
#include "common/compute/runtime/step_clock.h"
#include "common/compute/runtime/typed_graph.h"
#include "common/compute/runtime/variable_uses.h"
#include "common/compute/variables/on_device/device_session_over_host.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/device.h"
#include "common/core/device/stream.h"
#include "common/core/system/clock.h"
#include "common/core/system/memory_limits.h"
#include "common/core/tensor/check_numerics.h"

namespace muster {
namespace {

// A bound on planning time: planning a node takes some microseconds.
constexpr int64_t kUnrolledNodesMax = 20'000;

absl::Status CheckOptions(const ExecutableOptions& options) {
  if (options.intra_op_thread_count < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("intra_op_thread_count is ", options.intra_op_thread_count,
                     "; a step needs at least 1 thread"));
  }
  if (options.plan_count_max < 1 || options.plan_bytes_max < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "plan_count_max is ", options.plan_count_max, " and plan_bytes_max is ",
        options.plan_bytes_max, "; expected at least 1 and at least 0"));
  }
  if (options.device != nullptr && options.host_kernels == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a step on ", options.device->name(),
        " needs host_kernels, for constants and for soft placement"));
  }
  if (options.device != nullptr && ChecksNumerics()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--check_numerics looks at values on the host, and this step runs on ",
        options.device->name(), "; hide the GPUs: CUDA_VISIBLE_DEVICES="));
  }
  return absl::OkStatus();
}

std::vector<TensorType> TypesOf(absl::Span<const Tensor> tensors) {
  std::vector<TensorType> types;
  for (const Tensor& tensor : tensors) types.push_back(tensor.type());
  return types;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Executable>> Executable::Compile(
    Graph graph, const OpRegistry& ops, const KernelRegistry& kernels,
    VariableSessionFactory* variables, ExecutableOptions options) {
  RETURN_IF_ERROR(CheckOptions(options));
  RETURN_IF_ERROR(VerifyGraph(graph, ops));
  auto executable = absl::WrapUnique(
      new Executable(ApplyUpdatesEarly(DropDeadNodes(graph, ops), ops), ops,
                     kernels, options));
  if (options.replica_link != nullptr &&
      options.replica_link->replica_count() > 1 &&
      DependsOnReplicaRows(executable->graph_, ops)) {
    executable->replica_shapes_ = std::make_unique<ReplicaShapes>(
        executable->graph_, options.replica_link);
  }
  executable->stream_ = options.stream;
  if (options.device != nullptr && options.stream == nullptr) {
    ASSIGN_OR_RETURN(executable->own_stream_, options.device->CreateStream());
    executable->stream_ = executable->own_stream_.get();
  }
  RETURN_IF_ERROR(executable->OpenSession(variables));
  if (options.device == nullptr) return executable;
  ASSIGN_OR_RETURN(std::unique_ptr<StepGate> gate,
                   StepGate::Create(options.device, executable->stream_));
  if (executable->session_ != nullptr) {
    executable->gated_ = executable->session_->UseGate(gate.get());
  }
  if (executable->session_ == nullptr || executable->gated_ != nullptr) {
    executable->gate_ = std::move(gate);
  }
  return executable;
}

absl::Status Executable::OpenSession(VariableSessionFactory* variables) {
  if (uses_.empty()) return absl::OkStatus();
  if (variables == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("graph \"", graph_.name, "\" uses variable \"",
                     uses_[0].name, "\", but there is no variable store"));
  }
  if (options_.device != nullptr) {
    ASSIGN_OR_RETURN(session_, variables->OpenDeviceSession(
                                   uses_, options_.device, stream_));
    variables_on_device_ = session_ != nullptr;
    if (variables_on_device_) return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(session_, variables->OpenSession(uses_));
  if (options_.device != nullptr) {
    session_ =
        DeviceSessionOverHost(std::move(session_), options_.device, stream_);
  }
  return absl::OkStatus();
}

Executable::Executable(Graph graph, const OpRegistry& ops,
                       const KernelRegistry& kernels,
                       const ExecutableOptions& options)
    : graph_(std::move(graph)),
      ops_(ops),
      kernels_(kernels),
      options_(options),
      uses_(FindVariableUses(graph_, ops)) {}

Executable::~Executable() {
  // Started steps use the memory of their plans.
  while (!started_.empty()) {
    if (started_.back().is_unfinished) {
      started_.back().plan->CancelLast(session_.get());
    }
    started_.pop_back();
  }
}

absl::Status Executable::Run(absl::Span<const Tensor> arguments,
                             const RunOptions& options,
                             std::vector<Tensor>* results) {
  MUSTER_CHECK(started_.empty());
  ASSIGN_OR_RETURN(std::shared_ptr<Plan> plan, Prepare(arguments, options));
  if (!plan->can_start()) {
    return RunPlan(plan.get(), arguments, options, results);
  }
  RETURN_IF_ERROR(StartPlan(plan.get(), arguments, options));
  started_.push_back({.plan = std::move(plan), .is_unfinished = true});
  return Finish(results);
}

absl::Status Executable::MeasureIdleTime() {
  MUSTER_CHECK(overlaps_steps() && started_.empty());
  ASSIGN_OR_RETURN(clock_,
                   StepClock::Create(options_.device, stream_, kStartedMax));
  return absl::OkStatus();
}

absl::Status Executable::Start(absl::Span<const Tensor> arguments,
                               const RunOptions& options) {
  MUSTER_CHECK(started_count() < kStartedMax);
  ASSIGN_OR_RETURN(std::shared_ptr<Plan> plan, Prepare(arguments, options));
  Started started{.plan = std::move(plan)};
  if (started.plan->can_start()) {
    RETURN_IF_ERROR(StartPlan(started.plan.get(), arguments, options));
    started.is_unfinished = true;
  } else {
    RETURN_IF_ERROR(AwaitStarted());
    // An error of an earlier step cancels this one, too.
    if (gate_ == nullptr || gate_->closed_by() == 0) {
      RETURN_IF_ERROR(
          RunPlan(started.plan.get(), arguments, options, &started.results));
    }
  }
  started_.push_back(std::move(started));
  return absl::OkStatus();
}

absl::Span<const Tensor> Executable::StartedResults() {
  MUSTER_CHECK(!started_.empty());
  const Started& last = started_.back();
  if (!last.is_unfinished) return last.results;
  last.plan->ListStartedResults(&started_results_);
  return started_results_;
}

absl::Status Executable::Finish(std::vector<Tensor>* results) {
  MUSTER_CHECK(!started_.empty());
  const Started first = std::move(started_.front());
  started_.pop_front();
  if (!first.is_unfinished) {
    *results = first.results;
    return absl::OkStatus();
  }
  absl::Status status = first.plan->Finish(session_.get(), results);
  if (status.ok() && clock_ != nullptr) status = clock_->FinishStep();
  if (gated_ != nullptr) status.Update(gated_->Settle(status.ok()));
  if (status.ok()) return status;
  for (const Started& later : started_) {
    if (!later.is_unfinished) continue;
    later.plan->ForgetStarted();
    // Only the first error is returned.
    if (gated_ != nullptr) (void)gated_->Settle(/*was_applied=*/false);
  }
  started_.clear();
  if (clock_ != nullptr) clock_->Restart();
  return status;
}

absl::Status Executable::AwaitStarted() {
  if (started_.empty() || stream_ == nullptr) return absl::OkStatus();
  return stream_->Drain(
      Clock::Real()->Now() + Plan::kStepTimeout,
      absl::StrCat("the steps of graph \"", graph_.name, "\""));
}

absl::Status Executable::RunPlan(Plan* plan, absl::Span<const Tensor> arguments,
                                 const RunOptions& options,
                                 std::vector<Tensor>* results) {
  if (session_ != nullptr) {
    RETURN_IF_ERROR(session_->BeginPart(options.step_id, options.step_part));
  }
  if (options_.device != nullptr && options_.device->captures_steps()) {
    options_.device->graph_counters().host_steps.fetch_add(1);
  }
  RETURN_IF_ERROR(plan->Run(arguments, options, session_.get(), results));
  if (session_ == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(session_->Commit());
  return gated_ == nullptr ? absl::OkStatus()
                           : gated_->Settle(/*was_applied=*/true);
}

absl::Status Executable::StartPlan(Plan* plan,
                                   absl::Span<const Tensor> arguments,
                                   const RunOptions& options) {
  if (session_ != nullptr) {
    RETURN_IF_ERROR(session_->BeginPart(options.step_id, options.step_part));
  }
  RETURN_IF_ERROR(plan->Stage(arguments));
  if (clock_ != nullptr) {
    const absl::Status timed = clock_->BeginStep();
    if (!timed.ok()) {
      plan->CancelStaged();
      return timed;
    }
  }
  StepGraphs* const graphs = plan->graphs();
  if (graphs != nullptr) graphs->BeginStep();
  absl::Status status = plan->Start(options, session_.get());
  const bool has_begun = status.ok();
  if (status.ok() && session_ != nullptr) status = session_->Commit();
  if (graphs != nullptr) status.Update(graphs->EndStep());
  if (status.ok() && clock_ != nullptr) status = clock_->EndStep();
  if (!status.ok() && has_begun) plan->CancelLast(session_.get());
  return status;
}

absl::StatusOr<std::shared_ptr<Plan>> Executable::Prepare(
    absl::Span<const Tensor> arguments, const RunOptions& options) {
  if (options.example_offset < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("example_offset is ", options.example_offset,
                     "; a batch begins at row 0 of the global one or later"));
  }
  if (replica_shapes_ != nullptr) {
    RETURN_IF_ERROR(CheckArguments(graph_, TypesOf(arguments)));
    RETURN_IF_ERROR(replica_shapes_->Exchange(arguments));
  }
  return FindPlan(arguments);
}

absl::Span<const int64_t> Executable::replica_extents() const {
  return replica_shapes_ == nullptr ? absl::Span<const int64_t>()
                                    : replica_shapes_->extents();
}

absl::StatusOr<std::shared_ptr<Plan>> Executable::FindPlan(
    absl::Span<const Tensor> arguments) {
  const absl::Span<const int64_t> extents = replica_extents();
  const auto found =
      std::find_if(plans_.begin(), plans_.end(), [&](const PlanEntry& entry) {
        return entry.plan->Fits(arguments) && entry.replica_extents == extents;
      });
  if (found != plans_.end()) {
    plans_.splice(plans_.begin(), plans_, found);
    return plans_.front().plan;
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Plan> plan, MakePlan(arguments));
  if (plans_.size() == static_cast<size_t>(options_.plan_count_max)) {
    plans_.pop_back();
  }
  plans_.push_front({std::move(plan), {extents.begin(), extents.end()}});
  return plans_.front().plan;
}

Graph Executable::Simplified(Graph typed, const KernelRegistry& kernels) const {
  BypassNoOps(&typed, ops_);
  // Places on a device are chosen before constants are folded.
  if (options_.device == nullptr) FoldTypes(&typed);
  FoldPadding(&typed);
  DropTypeInputs(&typed, ops_);
  DropUnreadSteps(&typed, ops_);
  // A Scan runs on the host, so a device needs it unrolled.
  if (options_.device != nullptr) {
    UnrollScans(&typed, ops_, kUnrolledNodesMax);
  }
  ReadReluOutputs(&typed, ops_);
  const auto is_supported = [&](const KernelSpec& spec) {
    return kernels.Create(spec, options_.intra_op_thread_count).ok();
  };
  // The host has no kernels for the ops of the fusions that only devices use.
  if (options_.device != nullptr) FuseAttention(&typed, ops_, is_supported);
  FuseMatMulBias(&typed, ops_, is_supported);
  FuseImageOps(&typed, ops_, is_supported);
  if (options_.device != nullptr) FuseElementwise(&typed, ops_, is_supported);
  return DropDeadNodes(typed, ops_);
}

absl::StatusOr<std::unique_ptr<Plan>> Executable::MakeSubgraphPlan(
    const Graph& subgraph, absl::Span<const TensorType> parameters,
    int64_t bytes_max) const {
  const std::vector<TensorType> types(parameters.begin(), parameters.end());
  ASSIGN_OR_RETURN(Graph typed,
                   WithTypes(DropDeadNodes(subgraph, ops_), ops_, {types}, 0));
  return PlanBuilder::Build(
      Simplified(std::move(typed), host_kernels()),
      {.ops = ops_,
       .kernels = host_kernels(),
       .host_kernels = host_kernels(),
       .intra_op_thread_count = options_.intra_op_thread_count,
       .bytes_max = bytes_max,
       .plan_subgraph = absl::bind_front(&Executable::MakeSubgraphPlan, this)});
}

absl::StatusOr<std::unique_ptr<Plan>> Executable::MakePlan(
    absl::Span<const Tensor> arguments) const {
  std::vector<std::vector<TensorType>> types = {TypesOf(arguments)};
  int replica = 0;
  if (replica_shapes_ != nullptr) {
    types = replica_shapes_->ArgumentTypes();
    replica = options_.replica_link->replica_id();
  }
  ASSIGN_OR_RETURN(Graph typed, WithTypes(graph_, ops_, types, replica));
  PlacedGraph placed{.graph = Simplified(std::move(typed), kernels_),
                     .places = {}};
  if (options_.device != nullptr) {
    ASSIGN_OR_RETURN(
        placed,
        PlaceNodes(placed.graph,
                   {.ops = ops_,
                    .device_kernels = kernels_,
                    .intra_op_thread_count = options_.intra_op_thread_count,
                    .soft_placement = options_.soft_placement,
                    .variables_on_device = variables_on_device_,
                    .device_name = options_.device->name()}));
  }
  return PlanBuilder::Build(
      placed.graph,
      {.ops = ops_,
       .kernels = kernels_,
       .host_kernels = host_kernels(),
       .intra_op_thread_count = options_.intra_op_thread_count,
       .uses = uses_,
       .link = options_.replica_link,
       .bytes_max = options_.plan_bytes_max > 0
                        ? options_.plan_bytes_max
                        : static_cast<int64_t>(AvailableMemoryBytes() / 10 * 9),
       .device = options_.device,
       .stream = stream_,
       .gate = gate_.get(),
       .gated = gated_,
       .places = placed.places,
       .plan_subgraph = absl::bind_front(&Executable::MakeSubgraphPlan, this)});
}

}  // namespace muster
