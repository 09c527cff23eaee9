#include "common/compute/kernels/cuda/cudnn/execution_plan.h"

#include <algorithm>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"

namespace muster {

using cudnn::AttributeName;
using cudnn::DescriptorType;
using cudnn::NumericalNote;

namespace {

template <typename T>
bool Contains(const std::vector<T>& notes, T note) {
  return std::find(notes.begin(), notes.end(), note) != notes.end();
}

// A configuration of an engine.
struct Candidate {
  CudnnDescriptor config;
  bool is_compiled = false;
};

// True if the rules allow the engine's numerical behavior.
bool IsAllowed(const CudnnEngineRules& rules,
               const std::vector<NumericalNote>& notes) {
  for (const NumericalNote note :
       {NumericalNote::kNondeterministic, NumericalNote::kDownConvertInputs,
        NumericalNote::kReducedPrecisionReduction}) {
    if (Contains(notes, note)) return false;
  }
  return rules.allows_tensor_cores ||
         !Contains(notes, NumericalNote::kTensorCore);
}

// Returns nothing if the configuration is not allowed.
absl::StatusOr<std::optional<Candidate>> Examine(const CudnnEngineRules& rules,
                                                 CudnnDescriptor config) {
  ASSIGN_OR_RETURN(const std::vector<CudnnDescriptor> engines,
                   config.GetDescriptors(AttributeName::kEngineConfigEngine,
                                         DescriptorType::kEngine));
  if (engines.size() != 1) return std::nullopt;
  ASSIGN_OR_RETURN(
      const auto numerical,
      engines[0].GetList<NumericalNote>(AttributeName::kEngineNumericalNotes));
  if (!IsAllowed(rules, numerical)) return std::nullopt;
  ASSIGN_OR_RETURN(const auto behavior,
                   engines[0].GetList<cudnn::BehaviorNote>(
                       AttributeName::kEngineBehaviorNotes));
  return Candidate{
      std::move(config),
      Contains(behavior, cudnn::BehaviorNote::kRuntimeCompilation)};
}

// Appends the allowed configurations, the best first.
absl::Status AddCandidates(const CudnnTarget& target,
                           const CudnnEngineRules& rules,
                           const CudnnDescriptor& graph,
                           cudnn::HeuristicMode mode,
                           std::vector<Candidate>* candidates) {
  ASSIGN_OR_RETURN(
      CudnnDescriptor heuristic,
      CudnnDescriptor::Create(target.api, DescriptorType::kEngineHeuristic));
  heuristic.Set(AttributeName::kHeuristicOperationGraph, graph);
  heuristic.Set(AttributeName::kHeuristicMode, mode);
  if (target.device_properties != nullptr) {
    heuristic.Set(AttributeName::kHeuristicDeviceProperties,
                  *target.device_properties);
  }
  RETURN_IF_ERROR(heuristic.Finalize());
  ASSIGN_OR_RETURN(std::vector<CudnnDescriptor> configs,
                   heuristic.GetDescriptors(AttributeName::kHeuristicResults,
                                            DescriptorType::kEngineConfig));
  for (CudnnDescriptor& config : configs) {
    ASSIGN_OR_RETURN(std::optional<Candidate> candidate,
                     Examine(rules, std::move(config)));
    if (candidate.has_value()) candidates->push_back(*std::move(candidate));
  }
  return absl::OkStatus();
}

// Returns the allowed configurations in the order in which to try them.
absl::StatusOr<std::vector<Candidate>> FindCandidates(
    const CudnnTarget& target, const CudnnEngineRules& rules,
    const CudnnDescriptor& graph) {
  std::vector<Candidate> candidates;
  for (const cudnn::HeuristicMode mode :
       {cudnn::HeuristicMode::kA, cudnn::HeuristicMode::kFallback}) {
    const absl::Status status =
        AddCandidates(target, rules, graph, mode, &candidates);
    // If heuristics find no engine, cuDNN returns "not supported" or "not
    // initialized".
    if (!status.ok() && !absl::IsUnimplemented(status) &&
        !absl::IsUnavailable(status)) {
      return status;
    }
  }
  std::stable_partition(
      candidates.begin(), candidates.end(),
      [](const Candidate& candidate) { return !candidate.is_compiled; });
  return candidates;
}

absl::StatusOr<CudnnDescriptor> MakePlan(const CudnnTarget& target,
                                         const CudnnDescriptor& config) {
  ASSIGN_OR_RETURN(
      CudnnDescriptor plan,
      CudnnDescriptor::Create(target.api, DescriptorType::kExecutionPlan));
  if (target.handle != nullptr) {
    plan.Set(AttributeName::kPlanHandle, target.handle);
  }
  if (target.device_properties != nullptr) {
    plan.Set(AttributeName::kPlanDeviceProperties, *target.device_properties);
  }
  plan.Set(AttributeName::kPlanEngineConfig, config);
  RETURN_IF_ERROR(plan.Finalize());
  return plan;
}

}  // namespace

cudnn::CudnnDataType CudnnDataTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return cudnn::CudnnDataType::kFloat64;
    case DType::kFloat16:
      return cudnn::CudnnDataType::kFloat16;
    case DType::kBfloat16:
      return cudnn::CudnnDataType::kBfloat16;
    case DType::kInt32:
      return cudnn::CudnnDataType::kInt32;
    case DType::kBool:
      return cudnn::CudnnDataType::kBool;
    default:
      MUSTER_CHECK(dtype == DType::kFloat32);
      return cudnn::CudnnDataType::kFloat32;
  }
}

absl::Status FinishCudnnGraph(const CudnnTarget& target,
                              absl::Span<const cudnn::Descriptor> operations,
                              std::vector<CudnnDescriptor>* descriptors) {
  ASSIGN_OR_RETURN(
      CudnnDescriptor graph,
      CudnnDescriptor::Create(target.api, DescriptorType::kOperationGraph));
  if (target.handle != nullptr) {
    graph.Set(AttributeName::kGraphHandle, target.handle);
  }
  graph.SetDescriptors(AttributeName::kGraphOperations, operations);
  RETURN_IF_ERROR(graph.Finalize());
  descriptors->push_back(std::move(graph));
  return absl::OkStatus();
}

absl::StatusOr<CudnnPlan> CudnnPlan::Create(const CudnnTarget& target,
                                            CudnnGraph graph,
                                            const CudnnEngineRules& rules) {
  ASSIGN_OR_RETURN(std::vector<Candidate> candidates,
                   FindCandidates(target, rules, graph.descriptors.back()));
  absl::Status refusal = absl::UnimplementedError(
      absl::StrCat("cuDNN has no engine for ", rules.what));
  for (Candidate& candidate : candidates) {
    absl::StatusOr<CudnnDescriptor> plan = MakePlan(target, candidate.config);
    if (!plan.ok()) {
      // An engine may not support the problem, or its compilation may fail on
      // this machine.
      refusal = absl::UnimplementedError(plan.status().message());
      continue;
    }
    ASSIGN_OR_RETURN(const std::vector<int64_t> workspace_bytes,
                     plan->GetList<int64_t>(AttributeName::kPlanWorkspaceSize));
    if (workspace_bytes.size() != 1 ||
        workspace_bytes[0] > rules.workspace_bytes_max) {
      continue;
    }
    graph.descriptors.push_back(std::move(candidate.config));
    return CudnnPlan(std::move(graph), *std::move(plan),
                     static_cast<size_t>(workspace_bytes[0]),
                     candidate.is_compiled);
  }
  return refusal;
}

}  // namespace muster
