#ifndef COMMON_NET_COLLECTIVES_COST_MODEL_H_
#define COMMON_NET_COLLECTIVES_COST_MODEL_H_

#include <cstdint>
#include <limits>

#include "common/net/collectives/schedule.h"

// Predicts how long an all-reduce takes, by the LogGP model (Alexandrov et al.,
// SPAA 1995): the overhead of starting a message, its latency, and the time for
// its bytes. Pure functions. All times are in seconds and all sizes in bytes.
//
// The model is precise enough to choose between algorithms whose times differ
// by factors. A flat ring, for example, waits for the latency 2 (N-1) times, so
// that for large enough N it is slower than others at any bandwidth.
namespace muster {

// Costs of the link between two ranks.
struct LinkCosts {
  // Time until the first byte arrives at the other end (LogGP's L).
  double latency_seconds = 0;
  // Processor time to send or to receive a message (o).
  double overhead_seconds = 0;
  // Time per byte in each direction (G).
  double seconds_per_byte = 0;
};

struct CostModel {
  LinkCosts link;
  // Processor time to add a byte to another (gamma).
  double reduce_seconds_per_byte = 0;
  // Relative increase of the time per byte for each peer beyond the first that
  // sends to the same rank at the same time, because buffers in switches
  // overflow.
  double crowding_per_peer = 0;

  // Number of processors, for ranks on one host whose processors copy the bytes
  // between them. Rank r is bound to processor r modulo this number. Ranks that
  // share a processor do their work one after the other.
  int processor_count = std::numeric_limits<int>::max();
  // Time per message of switching from one rank to another, if a processor has
  // more than one rank.
  double wake_seconds = 0;
  // Additional time, in that case, for each byte from another processor. The
  // receiver may not be running when such a byte arrives, whereas a sender on
  // the same processor has just yielded to the receiver.
  double crossing_seconds_per_byte = 0;
  // The caches of a processor hold this many bytes of its ranks' tensors. Each
  // byte beyond takes `far_seconds_per_byte` more.
  double cached_bytes = std::numeric_limits<double>::infinity();
  double far_seconds_per_byte = 0;
};

// The work of the busiest rank in an all-reduce. Each field is multiplied by
// the constant of CostModel after which it is named.
struct CostCharges {
  double latencies = 0;
  double overheads = 0;
  double link_bytes = 0;
  double crossing_bytes = 0;
  double far_bytes = 0;
  double reduced_bytes = 0;
  double wakes = 0;
};

// For kOneShot, kDirect, kRing and kHalvingDoubling. Of `costs` it uses only
// the fields that no charge is multiplied by: crowding_per_peer,
// processor_count and cached_bytes.
CostCharges CountCharges(Algorithm algorithm, int size, int64_t size_bytes,
                         const CostModel& costs);

// Returns costs of raw lanes within one machine, as
// bench/network_all_reduce_benchmark measures them between two ranks. The
// crowding is an estimate.
CostModel RawLaneCosts();

// Returns the predicted time of an all-reduce; 0 for one rank.
double PredictAllReduceSeconds(Algorithm algorithm, int size,
                               int64_t size_bytes, const CostModel& costs);

// The algorithm with the least predicted time.
Algorithm CheapestAllReduce(int size, int64_t size_bytes,
                            const CostModel& costs);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_COST_MODEL_H_
