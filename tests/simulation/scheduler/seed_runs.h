#ifndef TESTS_SIMULATION_SCHEDULER_SEED_RUNS_H_
#define TESTS_SIMULATION_SCHEDULER_SEED_RUNS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/simulation/scheduler/choice_log.h"
#include "tests/simulation/scheduler/scheduler.h"

namespace muster::sim {

// What a run reports to the process that started it.
struct RunReport {
  uint64_t choice_hash = 0;
  int64_t choice_count = 0;
  int64_t virtual_nanoseconds = 0;
  // Bit n: the run has reached state n of a list that the caller keeps.
  uint64_t states = 0;
  // Set by the program, for example what it has counted.
  int64_t value = 0;
};

struct SeedRun {
  uint64_t seed = 0;
  // What waitpid() returned: 0 if the program returned 0.
  int wait_status = 0;
  RunReport report;
  // If each seed runs twice: an error that names the first choice in which the
  // runs differ.
  absl::Status repeats;
  // The choices of the run; null unless the options ask for them.
  std::shared_ptr<const ChoiceLog> choices;

  bool ok() const { return wait_status == 0 && repeats.ok(); }
  // "deadlock", "signal 6", "exit status 1". Empty if ok().
  std::string Problem() const;
};

// The program that runs in each process: returns the exit status. Sets `states`
// and `value` of the report; the others are set by RunSeeds().
using SeedProgram = std::function<int(Scheduler&, RunReport*)>;

struct SeedRunsOptions {
  uint64_t first_seed = 0;
  int seed_count = 1;
  // Runs each seed a second time and compares the choices.
  bool twice = false;
  // Keeps the choices of each run, about a megabyte per seed.
  bool keeps_choices = false;
  // How many seeds run at the same time; 0: one on each CPU.
  int process_count = 0;
  // Longer runs are killed. In real time.
  absl::Duration timeout = absl::Minutes(2);
  // Where the output of each seed goes, as seed_N.txt. Empty: not redirected.
  std::string output_folder;
  SchedulerOptions scheduler;  // The seed and the log are set here.
};

// Runs `program` once in a new process for each seed, and blocks until all have
// ended. The calling process must have one thread.
//   kUnavailable  a process could not be created
absl::StatusOr<std::vector<SeedRun>> RunSeeds(const SeedRunsOptions& options,
                                              const SeedProgram& program);

// The file with the output of a seed.
std::string OutputFile(const std::string& folder, uint64_t seed);

}  // namespace muster::sim

#endif  // TESTS_SIMULATION_SCHEDULER_SEED_RUNS_H_
