#include "tests/simulation/cluster/simulation.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/random.h"
#include "common/core/system/clock.h"
#include "tests/simulation/cluster/faults.h"
#include "tests/simulation/cluster/history.h"
#include "tests/simulation/cluster/simulated_cluster.h"
#include "tests/simulation/cluster/training.h"
#include "tests/simulation/network/simulated_network.h"

namespace muster::sim {
namespace {

constexpr int kStepCountMax = 60;
// Heartbeats, reconnections and the back-off between them; and if the
// coordinator was restarted, the time for which the others wait for the first
// one.
constexpr absl::Duration kRecoveryTimeMax = absl::Seconds(60);

// Starts the thread of this process that ends the timed waits of all hosts, as
// a thread of the simulation. Otherwise it belonged to the first host that
// waits, and would be killed with it.
void StartTimers() {
  absl::Mutex mutex;
  const bool never = false;
  absl::MutexLock lock(&mutex);
  Clock::Real()->AwaitWithDeadline(
      &mutex, absl::Condition(&never),
      Clock::Real()->Now() + absl::Microseconds(1));
}

SimulatedNetworkOptions DrawNetworkOptions(RandomStream* random) {
  SimulatedNetworkOptions options;
  options.transport.delay_max = absl::Microseconds(100 << random->Below(8));
  options.transport.delay_long_one_in =
      static_cast<int>(random->Below(2) * 200);
  options.duplicate_one_in = static_cast<int>(random->Below(2) * 10);
  return options;
}

bool WasContinued(const RunHistory& history) {
  return std::any_of(
      history.coordinators.begin(), history.coordinators.end(),
      [](const auto& coordinator) { return coordinator->coordinator > 0; });
}

bool WasRolledBack(const RunHistory& history) {
  return std::any_of(
      history.coordinators.begin(), history.coordinators.end(),
      [](const auto& coordinator) { return coordinator->rollback_count > 0; });
}

uint64_t ReachedStates(const FaultCounts& faults, const TrainingReport& report,
                       const RunHistory& history, int64_t repeated_push_count,
                       const SimulatedNetwork& network) {
  const bool reached[] = {
      faults.worker_kills > 0,      faults.server_kills > 0,
      faults.worker_stops > 0,      faults.server_stops > 0,
      faults.coordinator_stops > 0, faults.broken_connections > 0,
      faults.closed_paths > 0,      faults.moved_clocks > 0,
      faults.coordinator_kills > 0, faults.replaced_coordinators > 0,
      WasContinued(history),        faults.long_stops > 0,
      report.lost_worker_count > 0, report.retried_step_count > 0,
      WasRolledBack(history),       history.coordinators.size() > 1,
      repeated_push_count > 0,      network.repeated_call_count() > 0,
      report.takeover_count > 0,
  };
  static_assert(std::size(reached) == std::size(kStates));
  uint64_t states = 0;
  for (size_t i = 0; i < std::size(reached); ++i) {
    if (reached[i]) states |= uint64_t{1} << i;
  }
  return states;
}

}  // namespace

Scenario DrawScenario(const FaultMixture& mixture, uint64_t seed,
                      int server_copy_count) {
  RandomStream random(FoldIn(seed, "scenario"));
  Scenario scenario;
  scenario.training.step_count =
      1 + static_cast<int>(random.Below(kStepCountMax));
  scenario.training.steps_per_join =
      1 + static_cast<int>(random.Below(kStepCountMax));
  scenario.training.closures_in_flight = 1 + static_cast<int>(random.Below(3));
  scenario.network = DrawNetworkOptions(&random);
  scenario.pause_one_in = static_cast<int>(random.Below(2) * 1000);
  scenario.pause_max = absl::Milliseconds(1 << random.Below(8));
  scenario.training.server_copy_count = server_copy_count;
  scenario.cluster.server_count *= server_copy_count;
  scenario.faults =
      DrawFaults(mixture, SimulatedCluster::SpecOf(scenario.cluster), seed);
  return scenario;
}

Scenario DrawScenario(uint64_t seed) {
  RandomStream random(FoldIn(seed, "mixture"));
  const FaultMixture mixture = DrawMixture(&random);
  // The successor of a coordinator learns from a journal which task serves,
  // and there is none.
  const bool may_have_copies =
      !mixture.kills_coordinators && !mixture.replaces_coordinators;
  return DrawScenario(mixture, seed,
                      may_have_copies && random.Below(2) == 0 ? 2 : 1);
}

int SimulateTraining(Scheduler& scheduler, RunReport* report) {
  return Simulate(scheduler, DrawScenario(scheduler.seed()), report);
}

int SimulateCopies(Scheduler& scheduler, RunReport* report) {
  const FaultMixture mixture = {.fault_count = 8,
                                .pause_max = absl::Milliseconds(500),
                                .kills_servers = true,
                                .stops_servers = true,
                                .breaks_connections = true,
                                .closes_paths = true};
  return Simulate(scheduler,
                  DrawScenario(mixture, scheduler.seed(),
                               /*server_copy_count=*/2),
                  report);
}

int Simulate(Scheduler& scheduler, const Scenario& scenario,
             RunReport* run_report) {
  StartTimers();
  scheduler.SetPauses(scenario.pause_one_in, scenario.pause_max);
  // The threads of killed hosts may use these until the process exits.
  auto& network = *new SimulatedNetwork(&scheduler, scenario.network);
  auto& history = *new RunHistory;
  auto& record = *new JobRecord;
  auto& report = *new TrainingReport;
  SimulatedCluster* cluster = nullptr;
  cluster = new SimulatedCluster(
      &scheduler, &network, scenario.cluster, [&](const TaskIdentity& self) {
        return Train(cluster->spec(), self, &network, scenario.training,
                     &record, &history, &report);
      });
  for (const TaskId task : cluster->served_tasks()) cluster->Start(task);
  const TaskId coordinator = SimulatedCluster::coordinator();
  cluster->Start(coordinator);

  const FaultCounts faults = InjectFaults(
      scenario.faults, &scheduler, &network, cluster,
      [&] { return cluster->HasEnded(coordinator); },
      [&] { return record.may_continue; });
  const absl::Time healed = absl::Now();
  const absl::Status end =
      cluster->AwaitEnd(coordinator, Clock::Real()->Now() + kRecoveryTimeMax);
  if (absl::IsDeadlineExceeded(end)) {
    scheduler.ReportThreads();
  } else {
    history.end = end;
    history.recovery_time = absl::Now() - healed;
  }
  history.has_replaced_servers = cluster->HasReplacedServers();
  if (AreHarmless(scenario.faults)) {
    history.false_loss_count =
        report.lost_worker_count + report.lost_server_count;
  }
  const std::vector<std::string> violations =
      FindViolations(history, kRecoveryTimeMax);
  for (const std::string& violation : violations) {
    scheduler.Note(absl::StrCat("VIOLATION: ", violation));
  }
  run_report->states = ReachedStates(faults, report, history,
                                     cluster->RepeatedPushCount(), network);
  run_report->value = scenario.training.step_count;
  return violations.empty() ? 0 : 1;
}

}  // namespace muster::sim
