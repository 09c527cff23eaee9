#include "common/compute/variables/session_rules.h"

namespace muster {

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
