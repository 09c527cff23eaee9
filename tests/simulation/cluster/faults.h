#ifndef TESTS_SIMULATION_CLUSTER_FAULTS_H_
#define TESTS_SIMULATION_CLUSTER_FAULTS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/core/base/random.h"
#include "tests/simulation/cluster/simulated_cluster.h"

namespace muster::sim {

// Something that goes wrong in a run.
struct PlannedFault {
  enum class Kind {
    // The process of `task` is killed, and started again after `duration`.
    kKill,
    // It is stopped for `duration`.
    kStop,
    // The connections between `task` and `other` break.
    kBreak,
    // The path from `task` to `other` is closed for `duration`.
    kClosePath,
    // The wall clock of `task` is moved by `duration`, perhaps back.
    kMoveClock,
    // The coordinator is stopped, and after `duration` another one takes over
    // its job. The first one continues after `duration`.
    kReplaceCoordinator,
  };

  Kind kind = Kind::kKill;
  absl::Duration pause;  // Since the end of the fault before.
  TaskId task;
  TaskId other;
  absl::Duration duration;
  bool closes_both_ways = false;

  // "stops ps 1 for 6.1s".
  std::string ToString() const;
};

// Which faults a run has, and how many. Each run has another mixture, so that
// the rare ones are not always hidden by the frequent ones.
struct FaultMixture {
  int fault_count = 0;
  absl::Duration pause_max;  // Between two faults.
  // The longest time for which a task is stopped or a path is closed. Times
  // are mostly short.
  absl::Duration stop_max = absl::Seconds(20);
  bool kills_workers = false;
  bool kills_servers = false;
  bool stops_workers = false;
  bool stops_servers = false;
  bool stops_coordinators = false;
  bool breaks_connections = false;
  bool closes_paths = false;
  bool moves_clocks = false;
  bool kills_coordinators = false;
  bool replaces_coordinators = false;
};

// Returns a mixture in which the job may get another coordinator, or servers
// may be lost, but not both: a coordinator does not record yet which state of
// the servers its successor finds.
FaultMixture DrawMixture(RandomStream* random);

// Each fault is drawn from numbers of its own, so that the others stay the same
// if it is left out.
std::vector<PlannedFault> DrawFaults(const FaultMixture& mixture,
                                     const ClusterSpec& cluster, uint64_t seed);

// What InjectFaults() has done.
struct FaultCounts {
  int worker_kills = 0;
  int server_kills = 0;
  int worker_stops = 0;
  int server_stops = 0;
  int coordinator_stops = 0;
  int broken_connections = 0;
  int closed_paths = 0;
  int moved_clocks = 0;
  int coordinator_kills = 0;
  int replaced_coordinators = 0;
  int long_stops = 0;  // Longer than the heartbeat timeout.
};

// True if no task may count as lost because of `faults`: they only move clocks,
// and stop tasks for less than the heartbeat timeout together.
bool AreHarmless(const std::vector<PlannedFault>& faults);

// Injects `faults` one after another, until `is_over` returns true. Leaves out
// those that replace the coordinator while `may_replace` returns false. Then
// heals everything: all tasks run and all paths are open.
FaultCounts InjectFaults(const std::vector<PlannedFault>& faults,
                         Scheduler* scheduler, SimulatedNetwork* network,
                         SimulatedCluster* cluster,
                         const std::function<bool()>& is_over,
                         const std::function<bool()>& may_replace);

}  // namespace muster::sim

#endif  // TESTS_SIMULATION_CLUSTER_FAULTS_H_
