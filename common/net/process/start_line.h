#ifndef COMMON_NET_PROCESS_START_LINE_H_
#define COMMON_NET_PROCESS_START_LINE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/net/cluster/cluster_config.h"

namespace muster {

// The content of the first line that a process logs. It identifies the process
// for readers of the log.
struct StartInfo {
  ClusterConfig config;
  std::string address;  // Where the process listens; empty if it does not.
  uint64_t incarnation = 0;
  std::optional<uint64_t> seed;
  std::string resumes_from;  // A checkpoint; empty for a fresh start.
};

// Returns "muster 0.1.0  worker 1 of 2  localhost:20001  incarnation
// 6f1c02a9d2e4b713  seed 7", in one line.
std::string StartLine(const StartInfo& info);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_START_LINE_H_
