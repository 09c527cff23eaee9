#ifndef COMMON_NET_COLLECTIVES_SCHEDULE_H_
#define COMMON_NET_COLLECTIVES_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/net/collectives/communicator.h"

// Schedules: which rank sends which elements to which rank in which step. Pure
// functions, so that tests can run every group of up to 64 ranks without a
// network.
//
// With N ranks and S bytes, each rank:
//
//   algorithm           steps              bytes sent
//   one-shot            1                  (N-1) S
//   direct              2                  2 (N-1)/N S
//   ring                2 (N-1)            2 (N-1)/N S
//   halving-doubling    2 lg N             2 (N-1)/N S   (N a power of two)
//
// One-shot sends whole buffers to all ranks, and every rank reduces them.
// Direct sends each part to the rank that owns it, which returns the sum. Ring
// passes parts from neighbour to neighbour and adds in the first round.
// Halving-doubling exchanges halves with partners at halving, then doubling,
// distances (Rabenseifner, ICCS 2004; Thakur et al., IJHPCA 2005).
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
    kStore,       // Overwrites the elements: the received values are complete.
    kAccumulate,  // Reduces the received values into the elements.
    // As kAccumulate, and completes the reduction.
    kAccumulateLast,
  };

  int peer = 0;
  Communicator::Range range;       // Never empty, except in a barrier.
  Action action = Action::kStore;  // Used in receives only.
};

// The work of one rank in a step. A rank sends the values that it has after all
// earlier steps, and combines received values in the order of `receives`. Step
// i of one rank matches step i of every other rank.
struct ScheduleStep {
  std::vector<Transfer> sends;
  std::vector<Transfer> receives;
};
using Schedule = std::vector<ScheduleStep>;

// All-reduces `element_count` elements in place. For kDirect, kRing and
// kHalvingDoubling.
Schedule AllReduceSchedule(Algorithm algorithm, int rank, int size,
                           int64_t element_count);

// Leaves rank r with the reduction of its part, as Communicator::PartOf()
// defines it, combined in the order of AllReduceSchedule(). For kDirect, kRing
// and kHalvingDoubling.
Schedule ReduceScatterSchedule(Algorithm algorithm, int rank, int size,
                               int64_t element_count);

// `ends` has one entry for each rank: the offset at which its elements end in
// the output and those of the next rank begin. For kDirect and kRing.
Schedule AllGatherSchedule(Algorithm algorithm, int rank,
                           absl::Span<const int64_t> ends);

// A binomial tree.
Schedule BroadcastSchedule(int rank, int size, int root, int64_t element_count);

// Dissemination: after ceil(lg N) steps each rank has received, directly or
// through others, a message of every rank (Hensgen, Finkel and Manber, 1988).
// Transfers are empty.
Schedule BarrierSchedule(int rank, int size);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_SCHEDULE_H_
