#include "tests/simulation/cluster/simulation.h"

#include <set>

#include "gtest/gtest.h"
#include "tests/simulation/scheduler/testing/seed_expectations.h"

namespace muster::sim {
namespace {

TEST(SimulationTest, AppliesEachStepOnceWithFaults) {
  uint64_t states = 0;
  for (const SeedRun& run : ExpectSuccess(300, SimulateTraining)) {
    states |= run.report.states;
  }
  for (size_t i = 0; i < std::size(kStates); ++i) {
    EXPECT_TRUE((states >> i & 1) != 0) << "not reached: " << kStates[i];
  }
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

}  // namespace
}  // namespace muster::sim

int main(int argc, char** argv) {
  return muster::sim::RunSeedTests(argc, argv);
}
