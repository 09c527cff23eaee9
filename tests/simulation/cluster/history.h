#ifndef TESTS_SIMULATION_CLUSTER_HISTORY_H_
#define TESTS_SIMULATION_CLUSTER_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace muster::sim {

// What the program of one coordinator has seen. Each of the coordinators that
// continue the same job has a block of rows, one for each of its steps. Step k
// of coordinator c adds 1 to row r = c * step_count + k of `counts` and r + 1
// to every element of `sums` on each parameter server, assigns r + 1 to every
// element of two more variables, and returns r.
struct StepHistory {
  struct Step {
    absl::Status scheduled;  // What Schedule() returned.
    bool has_ended = false;
    absl::Status outcome;
    int64_t result = -1;
    // Join() has succeeded since it was scheduled, and no rollback has undone
    // it.
    bool is_acknowledged = false;
  };

  // The job, and which of its coordinators this is, from 0.
  std::string job_id;
  size_t coordinator = 0;
  std::vector<Step> steps;
  // The values at the end, by parameter server. Empty if they could not be
  // read.
  std::vector<std::vector<float>> counts;
  std::vector<std::vector<float>> sums;
  // The variables that each step assigns together. They are equal, because a
  // server applies exchanges in one order.
  std::vector<std::vector<float>> pair[2];
  // The last value that was assigned to a variable between steps, and what was
  // read after that. Both are empty if a server was lost meanwhile.
  std::vector<float> assigned;
  std::vector<float> read;
  int rollback_count = 0;
  // What the program found wrong while it ran: rollbacks that undid other steps
  // than they reported, reads without the effects of acknowledged steps, and
  // pairs that differ.
  std::vector<std::string> wrong_answers;
};

// What the coordinators of a run have seen, and how the run ended.
struct RunHistory {
  // In the order in which they started. The last one has ended the run, or
  // should have.
  std::vector<std::unique_ptr<StepHistory>> coordinators;
  // True if a server was started again, so that what an earlier coordinator
  // has acknowledged may be gone.
  bool has_replaced_servers = false;
  // Tasks that counted as lost although no fault made them silent.
  int64_t false_loss_count = 0;
  // How the last program ended; no value if it did not.
  std::optional<absl::Status> end;
  // From the end of all faults to the end of the program.
  absl::Duration recovery_time;
};

// Returns what is wrong with `history`, in sentences:
//   * each step of the last coordinator was applied exactly once on each server
//     and returned its own result
//   * no step of an earlier coordinator of the job was applied twice, and those
//     that were acknowledged were applied, unless servers were replaced
//   * sums are exact
//   * no assignment was undone by an earlier one
//   * no task counted as lost without a reason
//   * the program ended within `recovery_time_max` of the last fault
// Depends on the history alone.
std::vector<std::string> FindViolations(const RunHistory& history,
                                        absl::Duration recovery_time_max);

}  // namespace muster::sim

#endif  // TESTS_SIMULATION_CLUSTER_HISTORY_H_
