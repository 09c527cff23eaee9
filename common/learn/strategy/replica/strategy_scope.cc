#include "common/learn/strategy/replica/strategy_scope.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

thread_local Borrowed<Strategy> strategy_in_scope;

}  // namespace

absl::StatusOr<StrategyScope> StrategyScope::Enter(Strategy& strategy) {
  ASSIGN_OR_RETURN(
      Strategy* const outer,
      StrategyInScope(absl::StrCat("the scope of strategy \"", strategy.name(),
                                   "\" inside of its scope")));
  if (outer != nullptr && outer != &strategy) {
    const bool same_kind = outer->name() == strategy.name();
    return absl::FailedPreconditionError(absl::StrCat(
        "the scope of ", same_kind ? "another strategy \"" : "strategy \"",
        strategy.name(), "\" cannot begin inside of that of strategy \"",
        outer->name(), "\"; a program is of one strategy"));
  }
  return StrategyScope(std::exchange(strategy_in_scope, strategy.Borrow()));
}

StrategyScope::~StrategyScope() {
  if (is_entered_) strategy_in_scope = std::move(outer_);
}

absl::StatusOr<Strategy*> StrategyInScope(absl::string_view user) {
  RETURN_IF_ERROR(strategy_in_scope.Check(user));
  return strategy_in_scope.get();
}

}  // namespace muster
