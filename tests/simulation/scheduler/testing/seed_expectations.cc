#include "tests/simulation/scheduler/testing/seed_expectations.h"

#include <fstream>
#include <iostream>
#include <sstream>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/simulation/scheduler/repeatable_process.h"

namespace muster::sim {

std::vector<SeedRun> RunAll(SeedRunsOptions options,
                            const SeedProgram& program) {
  options.output_folder = testing::TempDir();
  return RunSeeds(options, program).value();
}

std::string OutputOf(uint64_t seed) {
  std::ifstream file(OutputFile(testing::TempDir(), seed));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<SeedRun> ExpectSuccess(int seed_count, const SeedProgram& program) {
  std::vector<SeedRun> runs = RunAll({.seed_count = seed_count}, program);
  for (const SeedRun& run : runs) {
    EXPECT_TRUE(run.ok()) << "seed " << run.seed << ": " << run.Problem()
                          << "\n"
                          << OutputOf(run.seed);
  }
  return runs;
}

void ExpectSameChoicesAlone(uint64_t first_seed, int seed_count,
                            const SeedProgram& program) {
  const std::vector<SeedRun> together =
      RunAll({.first_seed = first_seed,
              .seed_count = seed_count,
              .keeps_choices = true,
              .process_count = 4 * CpuCount()},
             program);
  for (const SeedRun& run : together) {
    const std::vector<SeedRun> alone =
        RunAll({.first_seed = run.seed, .keeps_choices = true}, program);
    const absl::Status same = run.choices->Compare(*alone[0].choices);
    EXPECT_TRUE(same.ok()) << "seed " << run.seed << ": " << same.message();
  }
}

int RunSeedTests(int argc, char** argv) {
  const absl::Status repeatable = MakeProcessRepeatable(argv);
  testing::InitGoogleTest(&argc, argv);
  if (!repeatable.ok()) {
    std::cerr << repeatable.message() << "\n";
    return 1;
  }
  return RUN_ALL_TESTS();
}

}  // namespace muster::sim
