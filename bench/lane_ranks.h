#ifndef BENCH_LANE_RANKS_H_
#define BENCH_LANE_RANKS_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/message/message_communicator.h"

// Ranks over lanes for benchmarks: processes that find each other through files
// in a folder, on one host or in network namespaces that share it. Any failure
// ends the process.
namespace muster {

struct LaneRank {
  std::string lanes = "tcp";  // "tcp", "unix" or "grpc".
  int rank = 0;
  int size = 2;
  std::string host = "127.0.0.1";  // Where this rank listens.
  std::string folder;              // Empty before the first rank comes.
};

// Binds this thread, and threads that it starts, to a processor, in turn.
void PinToProcessor(int rank);

// Meets the others, waiting up to a minute, and calls `body` with the group.
// Pins this thread; gRPC's own may go where they like.
void RunLaneRank(const LaneRank& rank, AlgorithmChoice choose,
                 const std::function<void(Communicator&)>& body);

// Runs all ranks of a group on this host, processes forked from this one, which
// has one thread. Returns when all are through.
void ForkLaneRanks(absl::string_view lanes, int size, AlgorithmChoice choose,
                   const std::function<void(Communicator&)>& body);

// How long an all-reduce of float32 takes when its owner has just rewritten the
// buffer, as the slowest rank of a call sees it. The same on every rank.
struct AllReduceTiming {
  double median_microseconds = 0;
  // Half of the calls took between these two.
  double lower_quartile_microseconds = 0;
  double upper_quartile_microseconds = 0;
  int call_count = 0;
};
AllReduceTiming TimeAllReduce(Communicator& communicator, size_t size_bytes,
                              int call_count);

}  // namespace muster

#endif  // BENCH_LANE_RANKS_H_
