#ifndef COMMON_LEARN_STRATEGY_INPUT_PREFETCHED_STEPS_H_
#define COMMON_LEARN_STRATEGY_INPUT_PREFETCHED_STEPS_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "common/learn/strategy/input/replica_batch.h"

namespace muster {

struct PrefetchOptions {
  // Steps that are made ahead; above 0.
  int step_count = 2;
  // Called by Next() whenever it has waited this much longer, with how long
  // that is in all and the number of steps taken before.
  absl::Duration slow_input_warning = absl::Seconds(30);
  std::function<void(absl::Duration waited, int64_t step_count)> on_slow_input;
};

// Draws from `input` on a thread of its own, ahead of whoever calls Next().
// Errors and the end come when it is their turn. The destructor waits for no
// more than the element that is being drawn.
std::unique_ptr<DistributedIterator> PrefetchSteps(
    std::unique_ptr<DistributedIterator> input, const PrefetchOptions& options);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_INPUT_PREFETCHED_STEPS_H_
