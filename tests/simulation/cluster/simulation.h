#ifndef TESTS_SIMULATION_CLUSTER_SIMULATION_H_
#define TESTS_SIMULATION_CLUSTER_SIMULATION_H_

#include "absl/strings/string_view.h"
#include "tests/simulation/scheduler/scheduler.h"
#include "tests/simulation/scheduler/seed_runs.h"

namespace muster::sim {

// States that a run may reach. A set of seeds that never reaches one does not
// test what depends on it.
inline constexpr absl::string_view kStates[] = {
    "a worker was killed",
    "a worker was stopped",
    "a server was stopped",
    "a connection was broken",
    "a path was closed",
    "a task was stopped for longer than the heartbeat timeout",
    "a worker was lost",
    "a step was retried",
    "a push arrived again after it was applied",
    "a call arrived twice",
};

// Trains on a simulated cluster with faults, all of which the seed of
// `scheduler` determines. Writes a timeline to standard error, and what
// FindViolations() returns. Returns 0 if there is none, and 1 otherwise.
int SimulateTraining(Scheduler& scheduler, RunReport* report);

}  // namespace muster::sim

#endif  // TESTS_SIMULATION_CLUSTER_SIMULATION_H_
