#include "common/compute/variables/variable_rules.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

// `old` is null before the first rule. `whose` is "of variable \"x\"", or
// empty.
absl::Status CheckSameRule(const UpdateRule* old, const UpdateRule& rule,
                           absl::string_view whose) {
  if (old == nullptr || old->name() == rule.name()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the optimizer ", whose, whose.empty() ? "" : " ", "is ",
                   old->name(), " and cannot become ", rule.name(),
                   "; create the variables again to change the rule"));
}

}  // namespace

absl::Status VariableRules::SetDefault(std::shared_ptr<const UpdateRule> rule) {
  RETURN_IF_ERROR(CheckSameRule(rules_->default_rule.get(), *rule, ""));
  auto changed = std::make_shared<Rules>(*rules_);
  changed->default_rule = std::move(rule);
  rules_ = std::move(changed);
  return absl::OkStatus();
}

absl::Status VariableRules::Set(absl::Span<const std::string> variables,
                                std::shared_ptr<const UpdateRule> rule) {
  for (const std::string& variable : variables) {
    RETURN_IF_ERROR(
        CheckSameRule(Of(variable).get(), *rule,
                      absl::StrCat("of variable \"", variable, "\"")));
  }
  auto changed = std::make_shared<Rules>(*rules_);
  for (const std::string& variable : variables) {
    changed->by_variable[variable] = rule;
  }
  rules_ = std::move(changed);
  return absl::OkStatus();
}

void VariableRules::Reset(absl::Span<const std::string> variables) {
  auto changed = std::make_shared<Rules>(*rules_);
  for (const std::string& variable : variables) {
    changed->by_variable.erase(variable);
  }
  rules_ = std::move(changed);
}

const std::shared_ptr<const UpdateRule>& VariableRules::Of(
    absl::string_view variable) const {
  const auto found = rules_->by_variable.find(variable);
  return found == rules_->by_variable.end() ? rules_->default_rule
                                            : found->second;
}

SessionRules::SessionRules(absl::Span<const VariableUse> uses)
    : rules_(uses.size()) {
  for (const VariableUse& use : uses) variables_.push_back(use.name);
}

void SessionRules::Update(const VariableRules& all) {
  if (all.IsCopyOf(all_)) return;
  all_ = all;
  for (size_t i = 0; i < variables_.size(); ++i) {
    rules_[i] = all_.Of(variables_[i]);
  }
}

}  // namespace muster
