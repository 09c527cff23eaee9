// Simulates training on a cluster, once for each of a range of seeds.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/simulation/cluster/simulation.h"
#include "tests/simulation/scheduler/repeatable_process.h"
#include "tests/simulation/scheduler/seed_runs.h"

ABSL_FLAG(int, seeds, 10, "How many seeds to run.");
ABSL_FLAG(uint64_t, first_seed, 0, "The first seed.");
ABSL_FLAG(bool, twice, false,
          "Runs each seed twice and fails if a choice differs.");
ABSL_FLAG(bool, copies, false,
          "All seeds have copies of servers, and faults that concern them.");
ABSL_FLAG(int, processes, 0, "How many seeds run at once; 0: one per CPU.");
ABSL_FLAG(std::string, output_folder, "/tmp/muster_simulation",
          "Where the timeline of each seed is written.");

namespace muster::sim {
namespace {

// Prints the timeline of the first failure.
void PrintFailure(const SeedRun& run, const std::string& folder) {
  std::ifstream file(OutputFile(folder, run.seed));
  const std::string timeline((std::istreambuf_iterator<char>(file)),
                             std::istreambuf_iterator<char>());
  std::cout << "seed " << run.seed << ": " << run.Problem() << "\n"
            << timeline
            << "repeat it with: tests/simulation/simulate.sh --first_seed="
            << run.seed << " --seeds=1\n";
}

int Main() {
  SeedRunsOptions options;
  options.first_seed = absl::GetFlag(FLAGS_first_seed);
  options.seed_count = absl::GetFlag(FLAGS_seeds);
  options.twice = absl::GetFlag(FLAGS_twice);
  options.process_count = absl::GetFlag(FLAGS_processes);
  options.output_folder = absl::GetFlag(FLAGS_output_folder);
  std::filesystem::create_directories(options.output_folder);
  const auto runs = RunSeeds(
      options, absl::GetFlag(FLAGS_copies) ? SimulateCopies : SimulateTraining);
  if (!runs.ok()) {
    std::cerr << runs.status() << "\n";
    return 2;
  }
  int violation_count = 0;
  uint64_t states = 0;
  for (const SeedRun& run : *runs) {
    states |= run.report.states;
    if (run.ok()) continue;
    if (++violation_count == 1) PrintFailure(run, options.output_folder);
    std::cout << "seed " << run.seed << ": " << run.Problem() << "\n";
  }
  int reached_count = 0;
  for (size_t i = 0; i < std::size(kStates); ++i) {
    const bool is_reached = (states >> i & 1) != 0;
    if (is_reached) ++reached_count;
    if (!is_reached) std::cout << "not reached: " << kStates[i] << "\n";
  }
  std::cout << runs->size() << " seeds, " << violation_count << " violations, "
            << reached_count << " states of " << std::size(kStates)
            << " reached" << std::endl;
  return violation_count == 0 ? 0 : 1;
}

}  // namespace
}  // namespace muster::sim

int main(int argc, char** argv) {
  const absl::Status repeatable = muster::sim::MakeProcessRepeatable(argv);
  if (!repeatable.ok()) std::cerr << repeatable.message() << "\n";
  absl::ParseCommandLine(argc, argv);
  return muster::sim::Main();
}
