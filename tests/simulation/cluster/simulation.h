#ifndef TESTS_SIMULATION_CLUSTER_SIMULATION_H_
#define TESTS_SIMULATION_CLUSTER_SIMULATION_H_

#include "absl/strings/string_view.h"
#include "tests/simulation/cluster/faults.h"
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
    "a connection was broken",
    "a path was closed",
    "a task was stopped for longer than the heartbeat timeout",
    "a worker was lost",
    "a step was retried",
    "training was rolled back",
    "the coordinator was restarted",
    "a push arrived again after it was applied",
    "a call arrived twice",
};

struct Scenario {
  int step_count = 1;
  SimulatedNetworkOptions network;
  FaultPlan faults;
};

Scenario DrawScenario(Scheduler* scheduler);

// Trains on a simulated cluster. The seed of `scheduler` determines when the
// faults of the scenario happen, and where. Writes a timeline to standard
// error, and what FindViolations() returns. Returns 0 if there is none, and 1
// otherwise.
int Simulate(Scheduler& scheduler, const Scenario& scenario, RunReport* report);

// The same with a scenario that the seed determines, too.
int SimulateTraining(Scheduler& scheduler, RunReport* report);

}  // namespace muster::sim

#endif  // TESTS_SIMULATION_CLUSTER_SIMULATION_H_
