#ifndef TESTS_SIMULATION_SCHEDULER_TESTING_SEED_EXPECTATIONS_H_
#define TESTS_SIMULATION_SCHEDULER_TESTING_SEED_EXPECTATIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/simulation/scheduler/seed_runs.h"

// For tests whose cases run programs under the scheduler. Each run is a
// process, and their output is kept in files.
namespace muster::sim {

// As RunSeeds(). Aborts the test if a process cannot be created.
std::vector<SeedRun> RunAll(SeedRunsOptions options,
                            const SeedProgram& program);

// What the last run of a seed wrote.
std::string OutputOf(uint64_t seed);

// Runs `program` with some seeds and expects that it returns 0 with all.
// Returns the runs.
std::vector<SeedRun> ExpectSuccess(int seed_count, const SeedProgram& program);

// Runs `seed_count` seeds together, many more at once than there are CPUs, and
// each of them alone. Expects that the choices are the same, or names the first
// one that differs.
void ExpectSameChoicesAlone(uint64_t first_seed, int seed_count,
                            const SeedProgram& program);

// The main() of such a test.
int RunSeedTests(int argc, char** argv);

}  // namespace muster::sim

#endif  // TESTS_SIMULATION_SCHEDULER_TESTING_SEED_EXPECTATIONS_H_
