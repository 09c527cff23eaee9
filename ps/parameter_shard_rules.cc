// The optimizers of the variables of a ParameterShard, and the memory for their
// slots.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/core/base/status_macros.h"
#include "ps/parameter_shard.h"

namespace muster {
namespace {

bool HasSameSlots(const UpdateRule& a, const UpdateRule& b) {
  return a.name() == b.name() &&
         std::equal(a.slots().begin(), a.slots().end(), b.slots().begin(),
                    b.slots().end(), [](const SlotSpec& x, const SlotSpec& y) {
                      return x.name == y.name;
                    });
}

}  // namespace

size_t ParameterShard::SlotCount(const std::shared_ptr<const UpdateRule>& rule,
                                 DType dtype) {
  const bool takes_gradients =
      dtype == DType::kFloat32 || dtype == DType::kFloat64;
  return rule == nullptr || !takes_gradients ? 0 : rule->slots().size();
}

absl::Status ParameterShard::SetOptimizer(
    const proto::SetOptimizerRequest& request) {
  ASSIGN_OR_RETURN(std::shared_ptr<const UpdateRule> rule,
                   UpdateRule::Create(request.optimizer()));
  if (rule->needs_whole_variables()) {
    return absl::UnimplementedError(absl::StrCat(
        rule->name(),
        " needs whole variables for an update, and parameter servers update "
        "parts of them; use adamw, or train synchronously"));
  }
  absl::MutexLock creating(&create_mutex_);
  absl::MutexLock lock(&mutex_);
  VariableRules rules = rules_;
  if (request.is_default()) RETURN_IF_ERROR(rules.SetDefault(rule));
  const std::vector<std::string> names(request.variables().begin(),
                                       request.variables().end());
  // CheckRules() finds the rules that variables of this server cannot leave.
  // Those of other servers may have started over.
  rules.Reset(names);
  RETURN_IF_ERROR(rules.Set(names, std::move(rule)));
  RETURN_IF_ERROR(CheckRules(rules));
  AdoptRules(std::move(rules));
  return absl::OkStatus();
}

absl::Status ParameterShard::CheckRules(const VariableRules& rules) const {
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (variables_[i] == nullptr) continue;
    const std::string& name = variables_[i]->spec().variable().name();
    const UpdateRule* const before = rule_by_handle_[i].get();
    const UpdateRule* const rule = rules.Of(name).get();
    if (before == nullptr || rule == nullptr || HasSameSlots(*before, *rule)) {
      continue;
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "the optimizer of variable \"", name, "\" is ", before->name(),
        " with ", before->slots().size(), " slots; it cannot become ",
        rule->name(), " with ", rule->slots().size(), " slots during a job"));
  }
  return CheckBudget(value_bytes_, SlotBytes(rules));
}

void ParameterShard::AdoptRules(VariableRules rules) {
  slot_bytes_ = SlotBytes(rules);
  rules_ = std::move(rules);
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (variables_[i] == nullptr) continue;
    rule_by_handle_[i] = rules_.Of(variables_[i]->spec().variable().name());
  }
}

size_t ParameterShard::SlotBytes(const VariableRules& rules) const {
  size_t size_bytes = 0;
  for (const auto& variable : variables_) {
    if (variable == nullptr) continue;
    const TensorType& type = variable->type();
    size_bytes +=
        type.shape.element_count() * SizeOf(type.dtype) *
        SlotCount(rules.Of(variable->spec().variable().name()), type.dtype);
  }
  return size_bytes;
}

absl::Status ParameterShard::CheckBudget(size_t value_bytes,
                                         size_t slot_bytes) const {
  if (options_.memory_bytes_max == 0 ||
      value_bytes + slot_bytes <= options_.memory_bytes_max) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "variables would use ", value_bytes, " bytes and their slots ",
      slot_bytes, ", but this server may use ", options_.memory_bytes_max,
      "; add servers, partition variables into more shards, or raise the "
      "limit"));
}

void ParameterShard::AssignAverages() {
  // No exchange is in progress, because each holds this lock until it ends.
  absl::MutexLock lock(&mutex_);
  for (const auto& variable : variables_) {
    if (variable != nullptr) variable->AssignAverage();
  }
}

}  // namespace muster
