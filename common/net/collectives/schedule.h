#ifndef COMMON_NET_COLLECTIVES_SCHEDULE_H_
#define COMMON_NET_COLLECTIVES_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/net/collectives/communicator.h"

// Which rank sends which elements to whom in which step. Pure functions of rank
// and size, so that the tests can walk every group up to 64 ranks without a
// wire.
//
// With N ranks and S bytes, each rank:
//
//   algorithm           steps              bytes sent
//   one-shot            1                  (N-1) S
//   direct              2                  2 (N-1)/N S
//   ring                2 (N-1)            2 (N-1)/N S
//   halving-doubling    2 lg N             2 (N-1)/N S   (N a power of two)
//
// One-shot moves whole buffers and lets every rank reduce them; direct sends
// each part to the rank that owns it, and that one sends the sum back; the ring
// passes parts on from neighbour to neighbour, adding on the first lap;
// halving-doubling exchanges with partners at doubling distances (Rabenseifner,
// ICCS 2004; Thakur et al., IJHPCA 2005).
namespace muster {

enum class Algorithm : uint8_t {
  kOneShot = 1,
  kDirect = 2,
  kRing = 3,
  kHalvingDoubling = 4,
  kTree = 5,           // Broadcast: binomial.
  kDissemination = 6,  // Barrier.
};

// "one-shot", "ring", ...
absl::string_view AlgorithmName(Algorithm algorithm);

struct Transfer {
  enum class Action : uint8_t {
    kStore,       // The value is complete.
    kAccumulate,  // It is added to what is there.
    // The same, and the sum is complete with it.
    kAccumulateLast,
  };

  int peer = 0;
  Communicator::Range range;       // Never empty, except in a barrier.
  Action action = Action::kStore;  // Receives only.
};

// The work of one rank in a step. It sends the values after all earlier
// steps; what it receives is combined in the order given. A step of one rank
// pairs with the step of the same number of another.
struct ScheduleStep {
  std::vector<Transfer> sends;
  std::vector<Transfer> receives;
};
using Schedule = std::vector<ScheduleStep>;

// The all-reduce of `element_count` elements in place; for kDirect, kRing and
// kHalvingDoubling.
Schedule AllReduceSchedule(Algorithm algorithm, int rank, int size,
                           int64_t element_count);

// After it, rank r holds the reduction of its part, as Communicator::PartOf()
// gives it; for kDirect and kRing.
Schedule ReduceScatterSchedule(Algorithm algorithm, int rank, int size,
                               int64_t element_count);

// `ends` has one entry for each rank: where its elements end in the output, and
// those of the next rank begin. For kDirect and kRing.
Schedule AllGatherSchedule(Algorithm algorithm, int rank,
                           absl::Span<const int64_t> ends);

// A binomial tree.
Schedule BroadcastSchedule(int rank, int size, int root, int64_t element_count);

// Dissemination: after ceil(lg N) steps everybody has heard of everybody
// (Hensgen, Finkel and Manber, 1988). Transfers are empty.
Schedule BarrierSchedule(int rank, int size);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_SCHEDULE_H_
