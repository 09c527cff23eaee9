#ifndef TESTS_SIMULATION_CLUSTER_TRAINING_H_
#define TESTS_SIMULATION_CLUSTER_TRAINING_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/network.h"
#include "tests/simulation/cluster/history.h"

namespace muster::sim {

// How many coordinators of one job have rows in its variables.
inline constexpr size_t kCoordinatorCountMax = 12;

struct TrainingOptions {
  int step_count = 1;
  // After so many steps the program waits for them and reads the variables.
  int steps_per_join = 1;
  // How many steps one worker runs concurrently.
  int closures_in_flight = 1;
  // Number of tasks that have the state of each of the two servers.
  int server_copy_count = 1;
};

// What outlives the coordinators of a job, as on a disk.
struct JobRecord {
  std::string job_id;  // Empty if the next coordinator begins a new job.
  uint64_t coordinator_epoch = 0;
  uint64_t closure_id_limit = 1;
  // The present coordinator can be replaced: it has created the variables,
  // training was not rolled back, and the job is not ending.
  bool may_continue = false;
};

// What happened inside the coordinators, beside what their programs have seen.
struct TrainingReport {
  int64_t retried_step_count = 0;
  int64_t lost_worker_count = 0;
  int64_t lost_server_count = 0;
  int64_t takeover_count = 0;
};

// The program of a coordinator: connects to the cluster, continues the job of
// `record` or begins another one, runs `step_count` steps asynchronously, reads
// the variables and ends the job. Adds what it sees to `history`. All pointers
// are borrowed.
absl::Status Train(const ClusterSpec& cluster, const TaskIdentity& self,
                   Network* network, const TrainingOptions& options,
                   JobRecord* record, RunHistory* history,
                   TrainingReport* report);

}  // namespace muster::sim

#endif  // TESTS_SIMULATION_CLUSTER_TRAINING_H_
