#include "common/runtime/executable.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/graph/graph_verifier.h"
#include "common/runtime/graph_rewrites.h"
#include "common/runtime/matmul_fusion.h"
#include "common/runtime/plan.h"
#include "common/runtime/plan_builder.h"
#include "common/runtime/typed_graph.h"
#include "common/runtime/variable_ops.h"

namespace muster {
namespace {

absl::Status CheckOptions(const ExecutableOptions& options) {
  if (options.intra_op_thread_count < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("intra_op_thread_count is ", options.intra_op_thread_count,
                     "; a step needs at least 1 thread"));
  }
  if (options.plan_count_max < 1 || options.plan_bytes_max < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "plan_count_max is ", options.plan_count_max, " and plan_bytes_max is ",
        options.plan_bytes_max, "; both must be at least 1"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Executable>> Executable::Compile(
    Graph graph, const OpRegistry& ops, const KernelRegistry& kernels,
    VariableStore* variables, ExecutableOptions options) {
  RETURN_IF_ERROR(CheckOptions(options));
  RETURN_IF_ERROR(VerifyGraph(graph, ops));
  auto executable = absl::WrapUnique(new Executable(
      ApplyUpdatesEarly(DropDeadNodes(graph, ops)), ops, kernels, options));
  if (executable->uses_.empty()) return executable;
  if (variables == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "graph \"", graph.name, "\" uses variable \"",
        executable->uses_[0].name, "\", but there is no variable store"));
  }
  ASSIGN_OR_RETURN(executable->session_,
                   variables->OpenSession(executable->uses_));
  return executable;
}

Executable::Executable(Graph graph, const OpRegistry& ops,
                       const KernelRegistry& kernels,
                       const ExecutableOptions& options)
    : graph_(std::move(graph)),
      ops_(ops),
      kernels_(kernels),
      options_(options),
      // The calling thread works too.
      pool_(options.intra_op_thread_count > 1
                ? std::make_unique<ThreadPool>(
                      "intra_op", options.intra_op_thread_count - 1)
                : nullptr),
      uses_(FindVariableUses(graph_)) {}

Executable::~Executable() = default;

absl::Status Executable::Run(absl::Span<const Tensor> arguments,
                             const RunOptions& options,
                             std::vector<Tensor>* results) {
  ASSIGN_OR_RETURN(Plan* const plan, FindPlan(arguments));
  if (session_ != nullptr) RETURN_IF_ERROR(session_->Begin(options.step_id));
  RETURN_IF_ERROR(
      plan->Run(arguments, options.step_seed, session_.get(), results));
  return session_ == nullptr ? absl::OkStatus() : session_->Commit();
}

absl::StatusOr<Plan*> Executable::FindPlan(absl::Span<const Tensor> arguments) {
  const auto found =
      std::find_if(plans_.begin(), plans_.end(),
                   [&](const auto& plan) { return plan->Fits(arguments); });
  if (found != plans_.end()) {
    plans_.splice(plans_.begin(), plans_, found);
    return plans_.front().get();
  }
  std::vector<TensorType> types;
  for (const Tensor& argument : arguments) types.push_back(argument.type());
  ASSIGN_OR_RETURN(Graph typed, WithTypes(graph_, ops_, types));
  BypassNoOps(&typed);
  ReadReluOutputs(&typed);
  FuseMatMulBias(&typed, [this](const KernelSpec& spec) {
    return kernels_.Create(spec, pool_.get()).ok();
  });
  ASSIGN_OR_RETURN(std::unique_ptr<Plan> plan,
                   PlanBuilder::Build(DropDeadNodes(typed, ops_),
                                      {.kernels = kernels_,
                                       .pool = pool_.get(),
                                       .uses = uses_,
                                       .bytes_max = options_.plan_bytes_max}));
  if (plans_.size() == static_cast<size_t>(options_.plan_count_max)) {
    plans_.pop_back();
  }
  plans_.push_front(std::move(plan));
  return plans_.front().get();
}

}  // namespace muster
