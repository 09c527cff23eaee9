#ifndef COMMON_NET_STATUS_STATUS_JSON_H_
#define COMMON_NET_STATUS_STATUS_JSON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/core/system/log_format.h"
#include "common/net/status/status_report.h"

namespace muster {

// The identity of a process: constant while it runs.
struct ProcessStatus {
  std::string version;  // The version of Muster.
  std::string job;      // The label muster_job; may be empty.
  std::string task;     // "worker 1"
  std::string role;     // "worker"
  int index = 0;
  uint64_t incarnation = 0;
  std::string address;  // The address in the cluster; may be empty.
  std::string host;
  int64_t process_id = 0;
  absl::Time start;
};

// The memory of a GPU that this process uses.
struct GpuStatus {
  std::string device;  // "gpu:0"
  double memory_bytes = 0;
  double memory_peak_bytes = 0;
  double memory_limit_bytes = 0;
};

// Returns /status.json. Times are in seconds since the Unix epoch, durations in
// seconds. Fields that are unknown are absent; numbers that JSON cannot express
// are null. docs/formats.md describes the fields.
std::string StatusJson(const ProcessStatus& process, const StatusReport& report,
                       const RecentProblems& problems,
                       const std::vector<GpuStatus>& gpus, absl::Time now);

}  // namespace muster

#endif  // COMMON_NET_STATUS_STATUS_JSON_H_
