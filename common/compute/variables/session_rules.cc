#include "common/compute/variables/session_rules.h"

#include <utility>

namespace muster {

SessionRules::SessionRules(absl::Span<const VariableUse> uses)
    : rules_(uses.size()) {
  for (const VariableUse& use : uses) variables_.push_back(use.name);
}

void SessionRules::Update(std::shared_ptr<const VariableRules> all) {
  if (all == all_) return;
  all_ = std::move(all);
  for (size_t i = 0; i < variables_.size(); ++i) {
    rules_[i] = all_->Of(variables_[i]);
  }
}

}  // namespace muster
