#ifndef COMMON_LEARN_STRATEGY_REPLICA_STRATEGY_SCOPE_H_
#define COMMON_LEARN_STRATEGY_REPLICA_STRATEGY_SCOPE_H_

#include <utility>

#include "absl/status/statusor.h"
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
  // `strategy` is borrowed, and outlives the scope.
  //   kFailedPrecondition  another strategy is in scope; names both
  static absl::StatusOr<StrategyScope> Enter(Strategy& strategy);

  ~StrategyScope();
  StrategyScope(StrategyScope&& other) noexcept
      : outer_(other.outer_),
        is_entered_(std::exchange(other.is_entered_, false)) {}
  StrategyScope& operator=(StrategyScope&&) = delete;

 private:
  explicit StrategyScope(Strategy* outer) : outer_(outer) {}

  Strategy* const outer_;  // Null: none was in scope.
  bool is_entered_ = true;
};

// The strategy in whose scope this thread is; null if there is none.
Strategy* StrategyInScope();

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_REPLICA_STRATEGY_SCOPE_H_
