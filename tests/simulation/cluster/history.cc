#include "tests/simulation/cluster/history.h"

#include "absl/strings/str_cat.h"

namespace muster::sim {
namespace {

using Violations = std::vector<std::string>;

void CheckOutcomes(const StepHistory& history, Violations* violations) {
  for (size_t k = 0; k < history.steps.size(); ++k) {
    const StepHistory::Step& step = history.steps[k];
    if (!step.scheduled.ok()) {
      violations->push_back(absl::StrCat(
          "step ", k, " was not scheduled: ", step.scheduled.message()));
    } else if (!step.has_ended) {
      violations->push_back(absl::StrCat("step ", k, " has no outcome"));
    } else if (!step.outcome.ok()) {
      violations->push_back(
          absl::StrCat("step ", k, " failed: ", step.outcome.message()));
    } else if (step.result != static_cast<int64_t>(k)) {
      violations->push_back(absl::StrCat("step ", k, " returned ", step.result,
                                         ", the result of another step"));
    }
  }
}

void CheckCounts(const StepHistory& history, Violations* violations) {
  for (size_t server = 0; server < history.counts.size(); ++server) {
    for (size_t k = 0; k < history.counts[server].size(); ++k) {
      const float count = history.counts[server][k];
      if (count == 1) continue;
      violations->push_back(absl::StrCat(
          count == 0 ? "lost: " : "doubled: ", "the push of step ", k,
          " to server ", server, " was applied ", count, " times"));
    }
  }
}

void CheckSums(const StepHistory& history, Violations* violations) {
  const auto count = static_cast<float>(history.steps.size());
  const float expected = count * (count + 1) / 2;
  for (size_t i = 0; i < history.sums.size(); ++i) {
    if (history.sums[i] == expected) continue;
    violations->push_back(absl::StrCat("sum ", i, " is ", history.sums[i],
                                       "; expected ", expected));
  }
}

}  // namespace

Violations FindViolations(const StepHistory& history,
                          absl::Duration recovery_time_max) {
  Violations violations;
  if (!history.end.has_value()) {
    return {absl::StrCat("no progress: training has not ended within ",
                         absl::FormatDuration(recovery_time_max),
                         " of the last fault")};
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
  violations.insert(violations.end(), history.wrong_reports.begin(),
                    history.wrong_reports.end());
  CheckOutcomes(history, &violations);
  if (history.counts.empty() || history.sums.empty()) {
    violations.push_back("the variables could not be read");
  }
  CheckCounts(history, &violations);
  CheckSums(history, &violations);
  if (history.read != history.assigned) {
    violations.push_back("an earlier assignment has replaced the last one");
  }
  return violations;
}

}  // namespace muster::sim
