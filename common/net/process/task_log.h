#ifndef COMMON_NET_PROCESS_TASK_LOG_H_
#define COMMON_NET_PROCESS_TASK_LOG_H_

#include <string>

#include "absl/strings/string_view.h"
#include "common/net/cluster/cluster_config.h"

namespace muster {

// Also writes the log of this process to a file in `run_dir`:
// logs/ROLE-INDEX.log, or logs/PROGRAM.log without a cluster. --log_megabytes
// limits its size. Does nothing with --nolog_file, if the log already has a
// file, or if `run_dir` is an object URL. If the file cannot be written, only
// logs a warning, because a log must not end a job.
void WriteTaskLog(const ClusterConfig& config, absl::string_view program,
                  const std::string& run_dir);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_TASK_LOG_H_
