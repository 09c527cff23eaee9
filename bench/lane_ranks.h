#ifndef BENCH_LANE_RANKS_H_
#define BENCH_LANE_RANKS_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/message/message_communicator.h"

// Ranks over lanes for benchmarks: processes that exchange their addresses
// through files in a folder, on one host or in network namespaces that share
// the folder. Any failure ends the process.
namespace muster {

struct LaneRank {
  // "tcp", "tls" (raw TCP with TLS), "unix", "grpc" or, where all ranks are
  // forked from one process, "grpc-tls" (mutual TLS).
  std::string lanes = "tcp";
  int rank = 0;
  int size = 2;
  std::string host = "127.0.0.1";  // The address at which it listens.
  std::string folder;              // Must be empty at the start.
};

// Pins this thread, and threads that it starts, to a processor, round robin.
void PinToProcessor(int rank);

// Connects to the other ranks within a minute, and calls `body` with the group.
// Pins this thread, but not those of gRPC.
void RunLaneRank(const LaneRank& rank, AlgorithmChoice choose,
                 const std::function<void(Communicator&)>& body);

// Forks all ranks of a group on this host from this process, which must have
// only one thread. Returns when all ranks have ended.
void ForkLaneRanks(absl::string_view lanes, int size, AlgorithmChoice choose,
                   const std::function<void(Communicator&)>& body);

// The time of an all-reduce of float32 whose buffer was rewritten before the
// call; the time of a call is that of its slowest rank. The same on every rank.
struct AllReduceTiming {
  double median_microseconds = 0;
  // The quartiles of the calls.
  double lower_quartile_microseconds = 0;
  double upper_quartile_microseconds = 0;
  int call_count = 0;
};
AllReduceTiming TimeAllReduce(Communicator& communicator, size_t size_bytes,
                              int call_count);

}  // namespace muster

#endif  // BENCH_LANE_RANKS_H_
