#include "common/compute/runtime/executable.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_verifier.h"
#include "common/compute/runtime/graph_rewrites.h"
#include "common/compute/runtime/image_fusion.h"
#include "common/compute/runtime/matmul_fusion.h"
#include "common/compute/runtime/placement.h"
#include "common/compute/runtime/plan.h"
#include "common/compute/runtime/plan_builder.h"
#include "common/compute/runtime/replica_ops.h"
#include "common/compute/runtime/typed_graph.h"
#include "common/compute/runtime/variable_ops.h"
#include "common/compute/variables/device_session_over_host.h"
#include "common/core/base/available_memory.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/device.h"
#include "common/core/device/stream.h"

namespace muster {
namespace {

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
  return absl::OkStatus();
}

std::vector<TensorType> TypesOf(absl::Span<const Tensor> tensors) {
  std::vector<TensorType> types;
  for (const Tensor& tensor : tensors) types.push_back(tensor.type());
  return types;
}

// Without a device: a session of the host.
absl::StatusOr<std::unique_ptr<VariableSession>> OpenSession(
    VariableSessionFactory* variables, absl::Span<const VariableUse> uses,
    Device* device, DeviceStream* stream) {
  if (device == nullptr) return variables->OpenSession(uses);
  ASSIGN_OR_RETURN(std::unique_ptr<VariableSession> on_device,
                   variables->OpenDeviceSession(uses, device, stream));
  if (on_device != nullptr) return on_device;
  ASSIGN_OR_RETURN(std::unique_ptr<VariableSession> on_host,
                   variables->OpenSession(uses));
  return DeviceSessionOverHost(std::move(on_host), device, stream);
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
  if (executable->uses_.empty()) return executable;
  if (variables == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "graph \"", graph.name, "\" uses variable \"",
        executable->uses_[0].name, "\", but there is no variable store"));
  }
  ASSIGN_OR_RETURN(executable->session_,
                   OpenSession(variables, executable->uses_, options.device,
                               executable->stream_));
  return executable;
}

Executable::Executable(Graph graph, const OpRegistry& ops,
                       const KernelRegistry& kernels,
                       const ExecutableOptions& options)
    : graph_(std::move(graph)),
      ops_(ops),
      kernels_(kernels),
      options_(options),
      uses_(FindVariableUses(graph_, ops)) {}

Executable::~Executable() = default;

absl::Status Executable::Run(absl::Span<const Tensor> arguments,
                             const RunOptions& options,
                             std::vector<Tensor>* results) {
  if (options.example_offset < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("example_offset is ", options.example_offset,
                     "; a batch begins at row 0 of the global one or later"));
  }
  if (replica_shapes_ != nullptr) {
    RETURN_IF_ERROR(CheckArguments(graph_, TypesOf(arguments)));
    RETURN_IF_ERROR(replica_shapes_->Exchange(arguments));
  }
  ASSIGN_OR_RETURN(Plan* const plan, FindPlan(arguments));
  if (session_ != nullptr) {
    RETURN_IF_ERROR(session_->BeginPart(options.step_id, options.step_part));
  }
  RETURN_IF_ERROR(plan->Run(arguments, options, session_.get(), results));
  return session_ == nullptr ? absl::OkStatus() : session_->Commit();
}

absl::Span<const int64_t> Executable::replica_extents() const {
  return replica_shapes_ == nullptr ? absl::Span<const int64_t>()
                                    : replica_shapes_->extents();
}

absl::StatusOr<Plan*> Executable::FindPlan(absl::Span<const Tensor> arguments) {
  const absl::Span<const int64_t> extents = replica_extents();
  const auto found =
      std::find_if(plans_.begin(), plans_.end(), [&](const PlanEntry& entry) {
        return entry.plan->Fits(arguments) && entry.replica_extents == extents;
      });
  if (found != plans_.end()) {
    plans_.splice(plans_.begin(), plans_, found);
    return plans_.front().plan.get();
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Plan> plan, MakePlan(arguments));
  if (plans_.size() == static_cast<size_t>(options_.plan_count_max)) {
    plans_.pop_back();
  }
  plans_.push_front({std::move(plan), {extents.begin(), extents.end()}});
  return plans_.front().plan.get();
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
  BypassNoOps(&typed, ops_);
  FoldPadding(&typed);
  DropTypeInputs(&typed, ops_);
  ReadReluOutputs(&typed);
  const auto is_supported = [this](const KernelSpec& spec) {
    return kernels_.Create(spec, options_.intra_op_thread_count).ok();
  };
  FuseMatMulBias(&typed, is_supported);
  FuseImageOps(&typed, is_supported);
  PlacedGraph placed{.graph = DropDeadNodes(typed, ops_), .places = {}};
  if (options_.device != nullptr) {
    ASSIGN_OR_RETURN(
        placed,
        PlaceNodes(placed.graph,
                   {.ops = ops_,
                    .device_kernels = kernels_,
                    .intra_op_thread_count = options_.intra_op_thread_count,
                    .soft_placement = options_.soft_placement,
                    .device_name = options_.device->name()}));
  }
  return PlanBuilder::Build(
      placed.graph,
      {.ops = ops_,
       .kernels = kernels_,
       .host_kernels =
           options_.device == nullptr ? kernels_ : *options_.host_kernels,
       .intra_op_thread_count = options_.intra_op_thread_count,
       .uses = uses_,
       .link = options_.replica_link,
       .bytes_max = options_.plan_bytes_max > 0
                        ? options_.plan_bytes_max
                        : static_cast<int64_t>(AvailableMemoryBytes() / 10 * 9),
       .device = options_.device,
       .stream = stream_,
       .places = placed.places});
}

}  // namespace muster
