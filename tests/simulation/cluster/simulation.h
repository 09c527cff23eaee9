#ifndef TESTS_SIMULATION_CLUSTER_SIMULATION_H_
#define TESTS_SIMULATION_CLUSTER_SIMULATION_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/simulation/cluster/faults.h"
#include "tests/simulation/cluster/simulated_cluster.h"
#include "tests/simulation/cluster/training.h"
#include "tests/simulation/network/simulated_network.h"
#include "tests/simulation/scheduler/scheduler.h"
#include "tests/simulation/scheduler/seed_runs.h"

namespace muster::sim {

// States that a run may reach. A set of seeds that never reaches one does not
// test what depends on it.
inline constexpr absl::string_view kStates[] = {
    "a worker was killed",
    "a server was killed",
    "a worker was stopped",
    "a server was stopped",
    "the coordinator was stopped",
    "a connection was broken",
    "a path was closed",
    "a clock was moved",
    "the coordinator was killed",
    "the coordinator was replaced while it was stopped",
    "a coordinator continued the job of another one",
    "a task was stopped for longer than the heartbeat timeout",
    "a worker was lost",
    "a step was retried",
    "training was rolled back",
    "the coordinator was restarted",
    "a push arrived again after it was applied",
    "a call arrived twice",
    "the copy of a server took over",
};

struct Scenario {
  // How often threads pause, and for how long: see Scheduler::SetPauses().
  int pause_one_in = 0;
  absl::Duration pause_max;
  SimulatedClusterOptions cluster;
  TrainingOptions training;
  SimulatedNetworkOptions network;
  std::vector<PlannedFault> faults;
};

// The scenario depends on `seed` alone, and not on what the scheduler chooses.
Scenario DrawScenario(uint64_t seed);
// The same with faults of this mixture, and with so many tasks that have the
// state of each server.
Scenario DrawScenario(const FaultMixture& mixture, uint64_t seed,
                      int server_copy_count = 1);

// Trains on a simulated cluster, with the choices of `scheduler`. Writes a
// timeline to standard error, and what FindViolations() returns. Returns 0 if
// there is none, and 1 otherwise.
int Simulate(Scheduler& scheduler, const Scenario& scenario, RunReport* report);

// The same with the scenario of the scheduler's seed.
int SimulateTraining(Scheduler& scheduler, RunReport* report);
// The same with copies of servers, and with faults that concern them.
int SimulateCopies(Scheduler& scheduler, RunReport* report);

}  // namespace muster::sim

#endif  // TESTS_SIMULATION_CLUSTER_SIMULATION_H_
