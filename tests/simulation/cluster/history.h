#ifndef TESTS_SIMULATION_CLUSTER_HISTORY_H_
#define TESTS_SIMULATION_CLUSTER_HISTORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace muster::sim {

// What a training program has seen, and what the variables are at its end.
// Step k adds 1 to element k of `counts` on each parameter server, adds k + 1
// to every element of `sums`, and returns k.
struct StepHistory {
  struct Step {
    absl::Status scheduled;  // What Schedule() returned.
    bool has_ended = false;
    absl::Status outcome;
    int64_t result = -1;
  };
  std::vector<Step> steps;
  // By parameter server. Empty if the variables could not be read.
  std::vector<std::vector<float>> counts;
  std::vector<float> sums;
  // The last value that was assigned to a variable, and what was read after
  // that. Both are empty if a server was lost meanwhile.
  std::vector<float> assigned;
  std::vector<float> read;
  // How often the program was started. Each start trains from the beginning,
  // and the members above are those of the last one.
  int start_count = 0;
  // How often training was rolled back, over all starts.
  int rollback_count = 0;
  // Rollbacks that undid other steps than they reported.
  std::vector<std::string> wrong_reports;
  // How the program ended; no value if it did not.
  std::optional<absl::Status> end;
  // From the end of all faults to the end of the program.
  absl::Duration recovery_time;
};

// Returns what is wrong with `history`, in sentences: each step was applied
// exactly once on each server, the sums are exact, each step returned its own
// result, no assignment was undone by an earlier one, and the program ended
// within `recovery_time_max` of the last fault. Depends on the history alone.
std::vector<std::string> FindViolations(const StepHistory& history,
                                        absl::Duration recovery_time_max);

}  // namespace muster::sim

#endif  // TESTS_SIMULATION_CLUSTER_HISTORY_H_
