#ifndef COMMON_LEARN_STRATEGY_SHARDED_STATE_H_
#define COMMON_LEARN_STRATEGY_SHARDED_STATE_H_

#include "absl/strings/string_view.h"

namespace muster {

// What synchronous replicas divide among themselves instead of each keeping all
// of it. Results are bit-identical.
//
// Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training
// Trillion Parameter Models", SC 2020. Equivalent to: DeepSpeed's zero stages,
// torch.distributed.optim.ZeroRedundancyOptimizer.
enum class ShardedState {
  kNone,
  // The slots of the optimizer (stage 1).
  kOptimizer,
};

// "NONE", "OPTIMIZER".
inline absl::string_view ShardedStateName(ShardedState state) {
  return state == ShardedState::kOptimizer ? "OPTIMIZER" : "NONE";
}

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SHARDED_STATE_H_
