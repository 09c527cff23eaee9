#ifndef COMMON_LEARN_TRAIN_JOB_LOSS_COST_H_
#define COMMON_LEARN_TRAIN_JOB_LOSS_COST_H_

#include <string>

#include "absl/time/time.h"
#include "common/net/cluster/cluster_config.h"

namespace muster {

namespace proto {
class TrainingJob;
}  // namespace proto

// Returns one line for the start of a job: what the loss of a parameter server,
// of the coordinator or of a synchronous worker costs with these settings, what
// a restart of the job costs, and which field or flag changes it.
//
// `server_return_timeout` is --server_return_timeout.
// `coordinator_return_timeout` is --coordinator_return_timeout; 0 if no other
// coordinator can continue the training. `min_workers` is --min_workers.
// `servers_keep_logs` is true if parameter servers can restore their state.
std::string DescribeLossCost(const proto::TrainingJob& job,
                             const ClusterConfig& config,
                             absl::Duration server_return_timeout,
                             absl::Duration coordinator_return_timeout,
                             int min_workers = 0,
                             bool servers_keep_logs = false);

// Returns how a job continues that a signal has ended in training, for the end
// of a line. `was_saved`: callbacks could save before the end.
std::string DescribeResumption(const proto::TrainingJob& job,
                               const std::string& run_dir, bool was_saved);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_LOSS_COST_H_
