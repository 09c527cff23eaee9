#ifndef COMMON_NET_COLLECTIVES_COST_MODEL_H_
#define COMMON_NET_COLLECTIVES_COST_MODEL_H_

#include <cstdint>
#include <limits>

#include "common/net/collectives/schedule.h"

// How long an all-reduce takes, as LogGP counts (Alexandrov et al., SPAA 1995):
// what a message costs to start, what it waits for, and what its bytes take.
// Pure. Seconds and bytes throughout.
//
// It is meant to tell algorithms apart that differ by factors: a flat ring
// passes 2 (N-1) times through the latency, and loses for that reason at some
// N, whatever the bandwidth.
namespace muster {

// A way between two ranks.
struct LinkCosts {
  // From one end to the other, for the first byte (LogGP's L).
  double latency_seconds = 0;
  // Of the processor, to send or to receive a message (o).
  double overhead_seconds = 0;
  // Of each direction, per byte (G).
  double seconds_per_byte = 0;
};

struct CostModel {
  LinkCosts link;
  // Of the processor, to add a byte to another (gamma).
  double reduce_seconds_per_byte = 0;
  // How much longer bytes take for each peer beyond the first that sends to the
  // same rank at the same time: buffers in switches run over.
  double crowding_per_peer = 0;

  // Where ranks of one host are connected by its own lanes, whose bytes its
  // processors move: how many it has, rank r being bound to processor r modulo
  // that. What ranks that share a processor have to do, they do one after the
  // other.
  int processor_count = std::numeric_limits<int>::max();
  // Of each message, when a processor has more than one rank: it puts one aside
  // and wakes another.
  double wake_seconds = 0;
  // More, for each byte that then comes from another processor: its receiver
  // may not have its turn, where a rank of the same processor gave its own up.
  double crossing_seconds_per_byte = 0;
  // The caches of a processor hold this much of the tensors of its ranks; each
  // byte that goes beyond takes `far_seconds_per_byte` more.
  double cached_bytes = std::numeric_limits<double>::infinity();
  double far_seconds_per_byte = 0;
};

// The work of the busiest rank of an all-reduce, each to be multiplied with
// the constant of CostModel that it is named after.
struct CostCharges {
  double latencies = 0;
  double overheads = 0;
  double link_bytes = 0;
  double crossing_bytes = 0;
  double far_bytes = 0;
  double reduced_bytes = 0;
  double wakes = 0;
};

// For kOneShot, kDirect, kRing and kHalvingDoubling. Of `costs` it takes only
// what no charge stands for: crowding, processors and the size of caches.
CostCharges CountCharges(Algorithm algorithm, int size, int64_t size_bytes,
                         const CostModel& costs);

// Over raw lanes of a machine, as bench/network_all_reduce_benchmark shows them
// between two ranks, except for the crowding, which is an estimate.
CostModel RawLaneCosts();

// 0 for one rank.
double PredictAllReduceSeconds(Algorithm algorithm, int size,
                               int64_t size_bytes, const CostModel& costs);

// The algorithm with the least predicted time.
Algorithm CheapestAllReduce(int size, int64_t size_bytes,
                            const CostModel& costs);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_COST_MODEL_H_
