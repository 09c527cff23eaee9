#include "tests/simulation/cluster/simulation.h"

#include <algorithm>
#include <set>

#include "gtest/gtest.h"
#include "tests/simulation/scheduler/testing/seed_expectations.h"

namespace muster::sim {
namespace {

bool WasRestarted(const SeedRun& run) {
  const auto* const state = std::find(std::begin(kStates), std::end(kStates),
                                      "the coordinator was restarted");
  return (run.report.states >> (state - std::begin(kStates)) & 1) != 0;
}

// Trains with faults of this mixture.
int SimulateWith(const FaultMixture& mixture, Scheduler& scheduler,
                 RunReport* report) {
  return Simulate(scheduler, DrawScenario(mixture, scheduler.seed()), report);
}

TEST(SimulationTest, AppliesEachStepOnceWithFaults) {
  uint64_t states = 0;
  for (const SeedRun& run : ExpectSuccess(300, SimulateTraining)) {
    states |= run.report.states;
  }
  for (size_t i = 0; i < std::size(kStates); ++i) {
    EXPECT_TRUE((states >> i & 1) != 0) << "not reached: " << kStates[i];
  }
}

TEST(SimulationTest, WaitsForServersThatStopWhileTrainingStarts) {
  for (const SeedRun& run :
       ExpectSuccess(200, [](Scheduler&scheduler, RunReport*report) -> int {
         return SimulateWith({.fault_count = 1,
                              .pause_max = absl::Milliseconds(60),
                              .stop_max = absl::Seconds(4),
                              .stops_servers = true},
                             scheduler, report);
       })) {
    EXPECT_FALSE(WasRestarted(run)) << OutputOf(run.seed);
  }
}

TEST(SimulationTest, RecoversServersThatDieWhileVariablesAreCreated) {
  int restarted_count = 0;
  for (const SeedRun& run :
       ExpectSuccess(400, [](Scheduler&scheduler, RunReport*report) -> int {
         return SimulateWith({.fault_count = 1,
                              .pause_max = absl::Milliseconds(20),
                              .kills_servers = true},
                             scheduler, report);
       })) {
    if (WasRestarted(run)) ++restarted_count;
  }
  EXPECT_GT(restarted_count, 0);
}

// Whichever task is lost and whenever, a push that was acknowledged is not
// lost, and none is applied twice.
TEST(SimulationTest, CopiesOfServersTakeOver) {
  ExpectSuccess(300, SimulateCopies);
}

TEST(SimulationTest, RepeatsTheRunsOfASeed) {
  std::set<uint64_t> hashes;
  for (const SeedRun& run :
       RunAll({.seed_count = 100, .twice = true}, SimulateTraining)) {
    EXPECT_TRUE(run.ok()) << "seed " << run.seed << ": " << run.Problem()
                          << OutputOf(run.seed);
    hashes.insert(run.report.choice_hash);
  }
  EXPECT_EQ(hashes.size(), 100u);
}

// Among these seeds are some whose runs depend on the addresses of objects.
TEST(SimulationTest, RunsASeedAloneAsAmongOthers) {
  ExpectSameChoicesAlone(/*first_seed=*/100, /*seed_count=*/160,
                         SimulateTraining);
}

}  // namespace
}  // namespace muster::sim

int main(int argc, char** argv) {
  return muster::sim::RunSeedTests(argc, argv);
}
