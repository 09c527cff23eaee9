#include "ps/shard_rules.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"

namespace muster {
namespace {

bool HasSameSlots(const UpdateRule& a, const UpdateRule& b) {
  return a.name() == b.name() &&
         std::equal(a.slots().begin(), a.slots().end(), b.slots().begin(),
                    b.slots().end(), [](const SlotSpec& x, const SlotSpec& y) {
                      return x.name == y.name;
                    });
}

size_t SizeBytes(const TensorType& type) {
  return type.shape.element_count() * SizeOf(type.dtype);
}

bool TakesGradients(const TensorType& type) {
  return type.dtype == DType::kFloat32 || type.dtype == DType::kFloat64;
}

size_t SlotBytesOf(const TensorType& type,
                   const std::shared_ptr<const UpdateRule>& rule) {
  return rule == nullptr || !TakesGradients(type)
             ? 0
             : SizeBytes(type) * rule->slots().size();
}

// Returns the rule that updates a shard of `variable`; null if there is none. A
// rule that depends on the shape of the variable needs whole variables.
std::shared_ptr<const UpdateRule> RuleFor(const VariableRules& rules,
                                          absl::string_view variable,
                                          const TensorType& type) {
  const std::shared_ptr<const UpdateRule>& rule = rules.Of(variable);
  return rule == nullptr ? nullptr : UpdateRuleFor(rule, variable, type.shape);
}

// Returns OK if the rule can update a shard. `is_whole` is true if the shard
// has all rows of the variable.
absl::Status CheckFits(const UpdateRule& rule, absl::string_view variable,
                       const TensorType& type, bool is_whole) {
  if (!TakesGradients(type)) return absl::OkStatus();
  if (rule.needs_whole_variables() && !is_whole) {
    return absl::UnimplementedError(absl::StrCat(
        rule.name(), " needs whole variables for an update, and variable \"",
        variable,
        "\" is partitioned; train without a partitioner, use adamw, or train "
        "synchronously"));
  }
  for (const SlotSpec& slot : rule.slots()) {
    if (!slot.shape.has_value()) continue;
    return absl::UnimplementedError(absl::StrCat(
        rule.name(), " has a slot \"", slot.name, "\" of another shape than ",
        "variable \"", variable,
        "\", which parameter servers do not support; use adamw, or train "
        "synchronously"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ShardRules::CheckNew(absl::string_view variable,
                                  const TensorType& type, bool is_whole) const {
  const auto rule = RuleFor(rules_, variable, type);
  if (rule != nullptr) {
    RETURN_IF_ERROR(CheckFits(*rule, variable, type, is_whole));
  }
  return CheckBudget(value_bytes_ + SizeBytes(type),
                     slot_bytes_ + SlotBytesOf(type, rule));
}

void ShardRules::Add(uint32_t handle, absl::string_view variable,
                     const TensorType& type, bool is_whole) {
  if (handle >= shards_.size()) shards_.resize(handle + 1);
  shards_[handle] = {.variable = std::string(variable),
                     .type = type,
                     .rule = RuleFor(rules_, variable, type),
                     .is_present = true,
                     .is_whole = is_whole};
  value_bytes_ += SizeBytes(type);
  slot_bytes_ += SlotBytesOf(type, shards_[handle].rule);
}

absl::Status ShardRules::Set(std::shared_ptr<const UpdateRule> rule,
                             absl::Span<const std::string> variables,
                             bool is_default) {
  VariableRules rules = rules_;
  if (is_default) RETURN_IF_ERROR(rules.SetDefault(rule));
  // Check() rejects rules that do not fit the slots of shards on this server. A
  // variable on other servers may have been created again, so its earlier rule
  // does not matter here.
  rules.Reset(variables);
  RETURN_IF_ERROR(rules.Set(variables, std::move(rule)));
  RETURN_IF_ERROR(Check(rules));
  Adopt(std::move(rules));
  return absl::OkStatus();
}

void ShardRules::Reset(const std::string& variable) {
  VariableRules rules = rules_;
  rules.Reset({variable});
  Adopt(std::move(rules));
}

void ShardRules::Clear() {
  rules_ = VariableRules();
  shards_.clear();
  value_bytes_ = 0;
  slot_bytes_ = 0;
}

absl::Status ShardRules::Check(const VariableRules& rules) const {
  for (const Shard& shard : shards_) {
    if (!shard.is_present) continue;
    const UpdateRule* const before = shard.rule.get();
    const auto rule = RuleFor(rules, shard.variable, shard.type);
    if (rule == nullptr) continue;
    RETURN_IF_ERROR(
        CheckFits(*rule, shard.variable, shard.type, shard.is_whole));
    if (before == nullptr || HasSameSlots(*before, *rule)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("the optimizer of variable \"", shard.variable, "\" is ",
                     before->name(), " with ", before->slots().size(),
                     " slots; it cannot become ", rule->name(), " with ",
                     rule->slots().size(), " slots during a job"));
  }
  return CheckBudget(value_bytes_, SlotBytes(rules));
}

absl::Status ShardRules::CheckBudget(size_t value_bytes,
                                     size_t slot_bytes) const {
  if (memory_bytes_max_ == 0 || value_bytes + slot_bytes <= memory_bytes_max_) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "variables would use ", value_bytes, " bytes and their slots ",
      slot_bytes, ", but this server may use ", memory_bytes_max_,
      "; add servers, partition variables into more shards, or raise the "
      "limit"));
}

void ShardRules::Adopt(VariableRules rules) {
  slot_bytes_ = SlotBytes(rules);
  rules_ = std::move(rules);
  for (Shard& shard : shards_) {
    if (!shard.is_present) continue;
    shard.rule = RuleFor(rules_, shard.variable, shard.type);
  }
}

size_t ShardRules::SlotBytes(const VariableRules& rules) const {
  size_t size_bytes = 0;
  for (const Shard& shard : shards_) {
    if (!shard.is_present) continue;
    size_bytes +=
        SlotBytesOf(shard.type, RuleFor(rules, shard.variable, shard.type));
  }
  return size_bytes;
}

}  // namespace muster
