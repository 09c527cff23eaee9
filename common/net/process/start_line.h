#ifndef COMMON_NET_PROCESS_START_LINE_H_
#define COMMON_NET_PROCESS_START_LINE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/net/cluster/cluster_config.h"

namespace muster {

// The first line of a process, so that a log that is read later begins with
// who wrote it.
struct StartInfo {
  ClusterConfig config;
  std::string address;  // Where it listens; empty if nowhere.
  uint64_t incarnation = 0;
  std::optional<uint64_t> seed;
  std::string resumes_from;  // A checkpoint; empty for a fresh start.
};

// "muster 0.1.0  worker 1 of 2  localhost:20001  incarnation 6f1c02a9d2e4b713
// seed 7", in one line.
std::string StartLine(const StartInfo& info);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_START_LINE_H_
