#ifndef COMMON_NET_COLLECTIVES_COST_FIT_H_
#define COMMON_NET_COLLECTIVES_COST_FIT_H_

#include <cstdint>

#include "absl/types/span.h"
#include "common/net/collectives/cost_model.h"
#include "common/net/collectives/schedule.h"

// The constants of the cost model from all-reduces that were timed. Pure.
namespace muster {

struct AllReduceSample {
  Algorithm algorithm = Algorithm::kDirect;
  int size = 2;
  int64_t size_bytes = 0;
  double seconds = 0;  // Positive.
};

double PredictSeconds(const AllReduceSample& sample, const CostModel& costs);

// The constants, none of them negative, whose predictions miss the samples by
// the least, by relative errors that count by their square while they are
// small and in proportion when not (Huber's loss), and the size of caches, of
// powers of two, that goes best with them. For a host of `processor_count`;
// crowding is left at 0, as its processors are what is short there.
//
// The samples determine a constant only if they differ in what it stands for:
// the one of a wake needs ranks that share processors, the one of an addition
// more than one algorithm.
CostModel FitCosts(absl::Span<const AllReduceSample> samples,
                   int processor_count);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_COST_FIT_H_
