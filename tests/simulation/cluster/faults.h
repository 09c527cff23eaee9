#ifndef TESTS_SIMULATION_CLUSTER_FAULTS_H_
#define TESTS_SIMULATION_CLUSTER_FAULTS_H_

#include <functional>

#include "absl/time/time.h"
#include "tests/simulation/cluster/simulated_cluster.h"

namespace muster::sim {

// Which faults a run has, and how many. Each run has another mixture, so that
// the rare ones are not always hidden by the frequent ones.
struct FaultPlan {
  int fault_count = 0;
  absl::Duration pause_max;  // Between two faults.
  // The longest time for which a task is stopped or a path is closed. Times
  // are mostly short.
  absl::Duration stop_max = absl::Seconds(20);
  bool kills_workers = false;
  bool kills_servers = false;
  bool stops_workers = false;
  bool stops_servers = false;
  bool breaks_connections = false;
  bool closes_paths = false;
};

FaultPlan DrawFaultPlan(Scheduler* scheduler);

// What Inject() has done.
struct FaultCounts {
  int worker_kills = 0;
  int server_kills = 0;
  int worker_stops = 0;
  int server_stops = 0;
  int broken_connections = 0;
  int closed_paths = 0;
  int long_stops = 0;  // Longer than the heartbeat timeout.
};

// Injects the faults of `plan` one after another, until `is_over` returns true.
// Then heals everything: all tasks run and all paths are open.
FaultCounts InjectFaults(const FaultPlan& plan, Scheduler* scheduler,
                         SimulatedNetwork* network, SimulatedCluster* cluster,
                         const std::function<bool()>& is_over);

}  // namespace muster::sim

#endif  // TESTS_SIMULATION_CLUSTER_FAULTS_H_
