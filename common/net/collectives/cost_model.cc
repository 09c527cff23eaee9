#include "common/net/collectives/cost_model.h"

#include <bit>
#include <cmath>

#include "common/core/base/check.h"

namespace muster {
namespace {

// What one rank sends and reduces in an all-reduce.
struct Work {
  double step_count = 0;
  double message_count = 0;  // Messages sent. As many are received.
  double sent_bytes = 0;
  double reduced_bytes = 0;
};

// Returns how many ranks run on the busiest processor.
double RanksPerProcessor(int size, const CostModel& costs) {
  return std::ceil(static_cast<double>(size) / costs.processor_count);
}

// Returns the fraction of the bytes sent by a rank that goes to ranks on other
// processors.
double CrossingShare(Algorithm algorithm, int size, int processor_count) {
  if (processor_count == 1) return 0;
  if (algorithm == Algorithm::kRing) return 1;
  if (algorithm != Algorithm::kHalvingDoubling) {
    return 1 - (std::ceil(static_cast<double>(size) / processor_count) - 1) /
                   (size - 1);
  }
  // Each round sends half as much as the round before, to a partner at half the
  // distance.
  const int player_count =
      static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
  double part = 1;
  double crossing = 0;
  for (int distance = player_count / 2; distance > 0; distance /= 2) {
    part /= 2;
    if (distance % processor_count != 0) crossing += part;
  }
  return crossing * player_count / (player_count - 1);
}

Work HalvingDoublingWork(int size, double bytes) {
  const unsigned player_count = std::bit_floor(static_cast<unsigned>(size));
  const double round_count = std::countr_zero(player_count);
  const double share = static_cast<double>(player_count - 1) / player_count;
  Work work = {2 * round_count, 2 * round_count, 2 * share * bytes,
               share * bytes};
  if (player_count == static_cast<unsigned>(size)) return work;
  // Ranks beyond the power of two send their values to a partner first and
  // receive the sums last.
  work.step_count += 2;
  work.message_count += 2;
  work.sent_bytes += 2 * bytes;
  work.reduced_bytes += bytes;
  return work;
}

Work WorkOf(Algorithm algorithm, int size, double bytes) {
  const double peer_count = size - 1;
  const double part_bytes = peer_count / size * bytes;
  switch (algorithm) {
    case Algorithm::kOneShot:
      return {1, peer_count, peer_count * bytes, peer_count * bytes};
    case Algorithm::kDirect:
      return {2, 2 * peer_count, 2 * part_bytes, part_bytes};
    case Algorithm::kRing:
      return {2 * peer_count, 2 * peer_count, 2 * part_bytes, part_bytes};
    case Algorithm::kHalvingDoubling:
      return HalvingDoublingWork(size, bytes);
    case Algorithm::kTree:
    case Algorithm::kDissemination:
      break;
  }
  MUSTER_CHECK(false && "not an all-reduce");
  return {};
}

}  // namespace

CostCharges CountCharges(Algorithm algorithm, int size, int64_t size_bytes,
                         const CostModel& costs) {
  if (size == 1) return {};
  const double bytes = static_cast<double>(size_bytes);
  const Work work = WorkOf(algorithm, size, bytes);
  const double sharing = RanksPerProcessor(size, costs);
  const bool is_crowded =
      algorithm == Algorithm::kOneShot || algorithm == Algorithm::kDirect;
  const double crowding =
      is_crowded ? 1 + costs.crowding_per_peer * (size - 2) : 1;
  CostCharges charges;
  charges.latencies = work.step_count;
  charges.overheads = 2 * work.message_count * sharing;
  charges.link_bytes = work.sent_bytes * crowding * sharing;
  if (sharing * bytes > costs.cached_bytes) {
    charges.far_bytes =
        charges.link_bytes * (1 - costs.cached_bytes / (sharing * bytes));
  }
  charges.reduced_bytes = work.reduced_bytes * sharing;
  if (sharing > 1) {
    charges.wakes = work.message_count;
    charges.crossing_bytes =
        charges.link_bytes *
        CrossingShare(algorithm, size, costs.processor_count);
  }
  return charges;
}

CostModel RawLaneCosts() {
  CostModel costs;
  costs.link.latency_seconds = 2e-6;
  costs.link.overhead_seconds = 1.6e-6;
  costs.link.seconds_per_byte = 0.12e-9;
  costs.reduce_seconds_per_byte = 0.2e-9;
  costs.crowding_per_peer = 0.05;
  return costs;
}

double PredictAllReduceSeconds(Algorithm algorithm, int size,
                               int64_t size_bytes, const CostModel& costs) {
  const CostCharges charges = CountCharges(algorithm, size, size_bytes, costs);
  return charges.latencies * costs.link.latency_seconds +
         charges.overheads * costs.link.overhead_seconds +
         charges.link_bytes * costs.link.seconds_per_byte +
         charges.crossing_bytes * costs.crossing_seconds_per_byte +
         charges.far_bytes * costs.far_seconds_per_byte +
         charges.reduced_bytes * costs.reduce_seconds_per_byte +
         charges.wakes * costs.wake_seconds;
}

Algorithm CheapestAllReduce(int size, int64_t size_bytes,
                            const CostModel& costs) {
  Algorithm cheapest = Algorithm::kOneShot;
  double least_seconds =
      PredictAllReduceSeconds(cheapest, size, size_bytes, costs);
  for (const Algorithm algorithm :
       {Algorithm::kDirect, Algorithm::kRing, Algorithm::kHalvingDoubling}) {
    const double seconds =
        PredictAllReduceSeconds(algorithm, size, size_bytes, costs);
    if (seconds < least_seconds) {
      least_seconds = seconds;
      cheapest = algorithm;
    }
  }
  return cheapest;
}

}  // namespace muster
