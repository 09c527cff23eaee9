#ifndef COMMON_LEARN_STRATEGY_INPUT_PREFETCHED_STEPS_H_
#define COMMON_LEARN_STRATEGY_INPUT_PREFETCHED_STEPS_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "common/learn/strategy/input/replica_batch.h"

namespace muster {

struct PrefetchOptions {
  // The number of steps prepared in advance; above 0.
  int step_count = 2;
  // Called by Next() whenever it has waited for another such interval, with the
  // total wait and the number of steps returned before.
  absl::Duration slow_input_warning = absl::Seconds(30);
  std::function<void(absl::Duration waited, int64_t step_count)> on_slow_input;
};

// Draws from `input` on a separate thread, ahead of the caller of Next().
// Errors and the end are reported in order. The destructor waits only for the
// element that is being drawn.
std::unique_ptr<DistributedIterator> PrefetchSteps(
    std::unique_ptr<DistributedIterator> input, const PrefetchOptions& options);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_INPUT_PREFETCHED_STEPS_H_
