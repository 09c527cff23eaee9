#include "common/learn/strategy/replica/strategy_scope.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

thread_local Strategy* strategy_in_scope = nullptr;

}  // namespace

absl::StatusOr<StrategyScope> StrategyScope::Enter(Strategy& strategy) {
  Strategy* const outer = strategy_in_scope;
  if (outer != nullptr && outer != &strategy) {
    const bool same_kind = outer->name() == strategy.name();
    return absl::FailedPreconditionError(absl::StrCat(
        "the scope of ", same_kind ? "another strategy \"" : "strategy \"",
        strategy.name(), "\" cannot begin inside of that of strategy \"",
        outer->name(), "\"; a program is of one strategy"));
  }
  strategy_in_scope = &strategy;
  return StrategyScope(outer);
}

StrategyScope::~StrategyScope() {
  if (is_entered_) strategy_in_scope = outer_;
}

Strategy* StrategyInScope() { return strategy_in_scope; }

}  // namespace muster
