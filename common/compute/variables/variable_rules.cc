#include "common/compute/variables/variable_rules.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

// `old` is null before the first rule. `whose`: "of variable \"x\"", or empty.
absl::Status CheckSameRule(const UpdateRule* old, const UpdateRule& rule,
                           absl::string_view whose) {
  if (old == nullptr || old->name() == rule.name()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the optimizer ", whose, whose.empty() ? "" : " ", "is ",
                   old->name(), " and cannot become ", rule.name(),
                   "; make the variables anew to change the rule"));
}

}  // namespace

absl::Status VariableRules::SetDefault(std::shared_ptr<const UpdateRule> rule) {
  RETURN_IF_ERROR(CheckSameRule(default_.get(), *rule, ""));
  default_ = std::move(rule);
  return absl::OkStatus();
}

absl::Status VariableRules::Set(absl::Span<const std::string> variables,
                                std::shared_ptr<const UpdateRule> rule) {
  for (const std::string& variable : variables) {
    RETURN_IF_ERROR(
        CheckSameRule(Of(variable).get(), *rule,
                      absl::StrCat("of variable \"", variable, "\"")));
  }
  for (const std::string& variable : variables) by_variable_[variable] = rule;
  return absl::OkStatus();
}

void VariableRules::Reset(absl::string_view variable) {
  by_variable_.erase(variable);
}

const std::shared_ptr<const UpdateRule>& VariableRules::Of(
    absl::string_view variable) const {
  const auto found = by_variable_.find(variable);
  return found == by_variable_.end() ? default_ : found->second;
}

}  // namespace muster
