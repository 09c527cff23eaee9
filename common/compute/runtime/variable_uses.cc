#include "common/compute/runtime/variable_uses.h"

#include <cstdint>
#include <map>

#include "common/compute/functions/gradient_clipping.h"

namespace muster {
namespace {

GradientClipping ClippingOf(const Node& node) {
  const auto limit = [&](absl::string_view name) {
    return node.attributes.GetOr<double>(name, 0.0);
  };
  return {.clipvalue = limit("clipvalue"),
          .clipnorm = limit("clipnorm"),
          .global_clipnorm = limit("global_clipnorm"),
          .norm_group = node.attributes.GetOr<int64_t>("norm_group", 0)};
}

}  // namespace

std::optional<VariableUpdateOp> FindVariableUpdateOp(absl::string_view op) {
  static const auto* const kUpdates =
      new std::map<absl::string_view, VariableUpdateOp>{
          {"AssignVariable", {UpdateKind::kAssign}},
          {"AssignAddVariable", {UpdateKind::kAssignAdd}},
          {"AssignSubVariable", {UpdateKind::kAssignSub}},
          {"ScatterUpdateVariable", {UpdateKind::kScatterUpdate, 1, 0}},
          {"ScatterAddVariable", {UpdateKind::kScatterAdd, 1, 0}},
          {"ScatterSubVariable", {UpdateKind::kScatterSub, 1, 0}},
          {"ApplyGradient", {UpdateKind::kApplyGradient}},
          {"ApplySparseGradient", {UpdateKind::kApplySparseGradient, 0, 1}},
      };
  const auto found = kUpdates->find(op);
  if (found == kUpdates->end()) return std::nullopt;
  return found->second;
}

std::string VariableOf(const Node& node) {
  return node.attributes.GetOr<std::string>(kVariableAttribute, "");
}

std::vector<VariableUse> FindVariableUses(const Graph& graph,
                                          const OpRegistry& ops) {
  std::vector<VariableUse> uses;
  std::map<std::string, size_t> positions;
  const auto use_of = [&](const std::string& variable) -> VariableUse& {
    const auto [position, is_new] = positions.emplace(variable, uses.size());
    if (is_new) uses.push_back({.name = variable});
    return uses[position->second];
  };
  int update_count = 0;
  for (const Node& node : graph.nodes) {
    if (!ops.FindOrPlain(node.op).uses_variable()) continue;
    const std::string loss_scale =
        node.attributes.GetOr<std::string>("loss_scale", "");
    if (!loss_scale.empty()) use_of(loss_scale).is_updated = true;
    VariableUse& use = use_of(VariableOf(node));
    const bool is_read = node.op == kReadVariableOp;
    if (is_read || node.op == kGatherVariableOp) {
      (is_read ? use.is_read : use.is_gathered) = true;
      for (auto& update : use.updates) update.is_read_later = true;
    } else {
      use.is_updated = true;
      use.updates.push_back({.position = update_count++,
                             .kind = FindVariableUpdateOp(node.op)->kind,
                             .clipping = ClippingOf(node),
                             .loss_scale = loss_scale});
    }
  }
  return uses;
}

}  // namespace muster
