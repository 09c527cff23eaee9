#ifndef COMMON_NET_COLLECTIVES_COST_FIT_H_
#define COMMON_NET_COLLECTIVES_COST_FIT_H_

#include <cstdint>

#include "absl/types/span.h"
#include "common/net/collectives/cost_model.h"
#include "common/net/collectives/schedule.h"

// Fits the constants of the cost model to timed all-reduces. Pure functions.
namespace muster {

struct AllReduceSample {
  Algorithm algorithm = Algorithm::kDirect;
  int size = 2;
  int64_t size_bytes = 0;
  double seconds = 0;  // Positive.
};

double PredictSeconds(const AllReduceSample& sample, const CostModel& costs);

// Returns the non-negative constants, and the power of two as cache size, that
// minimize Huber's loss of the relative prediction errors: small errors count
// by their square, large errors linearly. The result describes a host with
// `processor_count` processors. It leaves `crowding_per_peer` at 0, because on
// one host the processors are the bottleneck.
//
// The samples determine a constant only if they differ in the work that the
// constant stands for. `wake_seconds` requires ranks that share processors;
// `reduce_seconds_per_byte` requires more than one algorithm.
CostModel FitCosts(absl::Span<const AllReduceSample> samples,
                   int processor_count);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_COST_FIT_H_
