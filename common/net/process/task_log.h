#ifndef COMMON_NET_PROCESS_TASK_LOG_H_
#define COMMON_NET_PROCESS_TASK_LOG_H_

#include <string>

#include "absl/strings/string_view.h"
#include "common/net/cluster/cluster_config.h"

namespace muster {

// Also writes the log of this process to logs/ROLE-INDEX.log in `run_dir`, in a
// process without a cluster to logs/PROGRAM.log. --log_megabytes bounds it.
// Does nothing with --nolog_file, if the log has a file already, or if
// `run_dir` is an object URL. A file that cannot be written is a warning: a log
// must not end a job.
void WriteTaskLog(const ClusterConfig& config, absl::string_view program,
                  const std::string& run_dir);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_TASK_LOG_H_
