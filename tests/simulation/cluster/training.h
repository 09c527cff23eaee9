#ifndef TESTS_SIMULATION_CLUSTER_TRAINING_H_
#define TESTS_SIMULATION_CLUSTER_TRAINING_H_

#include "absl/status/status.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/network.h"
#include "tests/simulation/cluster/history.h"

namespace muster::sim {

// What happened inside the coordinator, beside what its program has seen.
struct TrainingReport {
  int64_t retried_step_count = 0;
  int64_t lost_worker_count = 0;
};

// The program of the coordinator: connects to the cluster, runs `step_count`
// steps asynchronously, reads the variables and ends the job. Writes what it
// sees to `history`. `network` is borrowed.
absl::Status Train(const ClusterSpec& cluster, const TaskIdentity& self,
                   Network* network, int step_count, StepHistory* history,
                   TrainingReport* report);

}  // namespace muster::sim

#endif  // TESTS_SIMULATION_CLUSTER_TRAINING_H_
