#ifndef COMMON_LEARN_STRATEGY_REPLICA_STRATEGY_SCOPE_H_
#define COMMON_LEARN_STRATEGY_REPLICA_STRATEGY_SCOPE_H_

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/base/lifetime.h"
#include "common/learn/strategy/strategy.h"

namespace muster {

// While one of these exists, variables and models that its thread creates
// belong to the strategy:
//
//   ASSIGN_OR_RETURN(const StrategyScope scope,
//                    StrategyScope::Enter(*strategy));
//
// The same strategy may be entered again. Scopes end in the reverse order, on
// the same thread.
//
// Equivalent to: tf.distribute.Strategy.scope().
class [[nodiscard]] StrategyScope {
 public:
  // `strategy` is borrowed. If the strategy is destroyed before the scope ends,
  // calls in the scope that need a strategy return an error.
  //   kFailedPrecondition  another strategy is in scope: names both; or the
  //                        strategy in scope is destroyed
  static absl::StatusOr<StrategyScope> Enter(Strategy& strategy);

  ~StrategyScope();
  StrategyScope(StrategyScope&& other) noexcept
      : outer_(std::move(other.outer_)),
        is_entered_(std::exchange(other.is_entered_, false)) {}
  StrategyScope& operator=(StrategyScope&&) = delete;

 private:
  explicit StrategyScope(Borrowed<Strategy> outer) : outer_(std::move(outer)) {}

  Borrowed<Strategy> outer_;  // Empty if no strategy was in scope.
  bool is_entered_ = true;
};

// Returns the strategy in whose scope this thread is; null if there is none.
// `user` names the object that needs the strategy, for messages: `model
// "sequential"`.
//   kFailedPrecondition  the strategy is destroyed; names it and `user`
absl::StatusOr<Strategy*> StrategyInScope(absl::string_view user);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_REPLICA_STRATEGY_SCOPE_H_
