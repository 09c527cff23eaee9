#include "tests/simulation/cluster/history.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster::sim {
namespace {

using Violations = std::vector<std::string>;

void CheckOutcomes(const StepHistory& history, Violations* violations) {
  for (size_t k = 0; k < history.steps.size(); ++k) {
    const StepHistory::Step& step = history.steps[k];
    const size_t row = history.coordinator * history.steps.size() + k;
    if (!step.scheduled.ok()) {
      violations->push_back(absl::StrCat(
          "step ", k, " was not scheduled: ", step.scheduled.message()));
    } else if (!step.has_ended) {
      violations->push_back(absl::StrCat("step ", k, " has no outcome"));
    } else if (!step.outcome.ok()) {
      violations->push_back(
          absl::StrCat("step ", k, " failed: ", step.outcome.message()));
    } else if (step.result != static_cast<int64_t>(row)) {
      violations->push_back(absl::StrCat("step ", k, " returned ", step.result,
                                         ", the result of another step"));
    }
  }
}

// How often a step may have been applied.
struct CountRange {
  float min = 0;
  float max = 0;
};

// The range of one row of the variables of the last coordinator.
CountRange RangeOf(const RunHistory& history, size_t row) {
  const StepHistory& last = *history.coordinators.back();
  const size_t coordinator = row / last.steps.size();
  if (coordinator == last.coordinator) return {.min = 1, .max = 1};
  for (const auto& earlier : history.coordinators) {
    if (earlier->job_id != last.job_id || earlier->coordinator != coordinator) {
      continue;
    }
    const bool is_kept =
        !history.has_replaced_servers &&
        earlier->steps[row % earlier->steps.size()].is_acknowledged;
    return {.min = is_kept ? 1.0f : 0.0f, .max = 1};
  }
  return {};
}

void CheckCounts(const RunHistory& history, Violations* violations) {
  const StepHistory& last = *history.coordinators.back();
  for (size_t server = 0; server < last.counts.size(); ++server) {
    for (size_t row = 0; row < last.counts[server].size(); ++row) {
      const float count = last.counts[server][row];
      const CountRange range = RangeOf(history, row);
      if (count >= range.min && count <= range.max) continue;
      const size_t coordinator = row / last.steps.size();
      violations->push_back(absl::StrCat(
          count < range.min ? "lost: " : "doubled: ", "the push of step ",
          row % last.steps.size(),
          coordinator == last.coordinator
              ? std::string()
              : absl::StrCat(" of coordinator ", coordinator),
          " to server ", server, " was applied ", count, " times"));
    }
  }
}

void CheckSums(const StepHistory& history, Violations* violations) {
  for (size_t server = 0; server < history.sums.size(); ++server) {
    float expected = 0;
    for (size_t row = 0; row < history.counts[server].size(); ++row) {
      expected += history.counts[server][row] * static_cast<float>(row + 1);
    }
    for (const float sum : history.sums[server]) {
      if (sum == expected) continue;
      violations->push_back(absl::StrCat("a sum on server ", server, " is ",
                                         sum, "; expected ", expected));
    }
  }
}

void CheckLast(const RunHistory& history, Violations* violations) {
  const StepHistory& last = *history.coordinators.back();
  CheckOutcomes(last, violations);
  if (last.counts.empty() || last.sums.empty()) {
    violations->push_back("the variables could not be read");
  }
  CheckCounts(history, violations);
  CheckSums(last, violations);
  if (last.read != last.assigned) {
    violations->push_back("an earlier assignment has replaced the last one");
  }
}

}  // namespace

Violations FindViolations(const RunHistory& history,
                          absl::Duration recovery_time_max) {
  Violations violations;
  for (const auto& coordinator : history.coordinators) {
    violations.insert(violations.end(), coordinator->wrong_answers.begin(),
                      coordinator->wrong_answers.end());
  }
  if (!history.end.has_value()) {
    violations.push_back(absl::StrCat(
        "no progress: training has not ended within ",
        absl::FormatDuration(recovery_time_max), " of the last fault"));
    return violations;
  }
  if (!history.end->ok()) {
    violations.push_back(
        absl::StrCat("training failed: ", history.end->message()));
  }
  if (history.recovery_time > recovery_time_max) {
    violations.push_back(absl::StrCat(
        "training ended ", absl::FormatDuration(history.recovery_time),
        " after the last fault; expected at most ",
        absl::FormatDuration(recovery_time_max)));
  }
  if (history.false_loss_count > 0) {
    violations.push_back(absl::StrCat(
        history.false_loss_count,
        " tasks counted as lost although none was silent for long"));
  }
  if (history.end->ok()) CheckLast(history, &violations);
  return violations;
}

}  // namespace muster::sim
