#include "common/collectives/cost_model.h"

#include <bit>

#include "common/base/check.h"

namespace muster {
namespace {

// Half an all-reduce: a ring of reduce-scatter, or of all-gather.
double HalfRingSeconds(int size, double size_bytes, const LinkCosts& link) {
  const double hop_count = size - 1;
  return hop_count * (link.latency_seconds + 2 * link.overhead_seconds) +
         hop_count / size * size_bytes * link.seconds_per_byte;
}

double HalvingDoublingSeconds(int size, double size_bytes,
                              const CostModel& costs) {
  const LinkCosts& link = costs.link;
  const unsigned player_count = std::bit_floor(static_cast<unsigned>(size));
  const int round_count = std::countr_zero(player_count);
  const double message_seconds =
      link.latency_seconds + 2 * link.overhead_seconds;
  const double share = static_cast<double>(player_count - 1) / player_count;
  double seconds =
      2 * round_count * message_seconds +
      share * size_bytes *
          (2 * link.seconds_per_byte + costs.reduce_seconds_per_byte);
  if (player_count == static_cast<unsigned>(size)) return seconds;
  // Those beyond hand their values over first, and get the sums last.
  return seconds + 2 * (message_seconds + size_bytes * link.seconds_per_byte) +
         size_bytes * costs.reduce_seconds_per_byte;
}

}  // namespace

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
  if (size == 1) return 0;
  const LinkCosts& link = costs.link;
  const double peer_count = size - 1;
  const double bytes = static_cast<double>(size_bytes);
  const double crowding = 1 + costs.crowding_per_peer * (peer_count - 1);
  const double share = peer_count / size;
  switch (algorithm) {
    case Algorithm::kOneShot:
      return link.latency_seconds + 2 * peer_count * link.overhead_seconds +
             peer_count * bytes *
                 (crowding * link.seconds_per_byte +
                  costs.reduce_seconds_per_byte);
    case Algorithm::kDirect:
      return 2 * link.latency_seconds + 4 * peer_count * link.overhead_seconds +
             share * bytes *
                 (2 * crowding * link.seconds_per_byte +
                  costs.reduce_seconds_per_byte);
    case Algorithm::kRing:
      return 2 * HalfRingSeconds(size, bytes, link) +
             share * bytes * costs.reduce_seconds_per_byte;
    case Algorithm::kHalvingDoubling:
      return HalvingDoublingSeconds(size, bytes, costs);
    case Algorithm::kTree:
    case Algorithm::kDissemination:
      break;
  }
  MUSTER_CHECK(false && "not an all-reduce");
  return 0;
}

double PredictTwoLevelSeconds(int host_count, int ranks_per_host,
                              int64_t size_bytes, const CostModel& local,
                              Algorithm across, const CostModel& network) {
  return PredictAllReduceSeconds(Algorithm::kRing, ranks_per_host, size_bytes,
                                 local) +
         PredictAllReduceSeconds(across, host_count,
                                 size_bytes / ranks_per_host, network);
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
