#include "coordinator/synchronous_steps.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "common/core/base/status_macros.h"
#include "coordinator/closure_dispatcher.h"

namespace muster {
namespace {

std::vector<std::string> TrainedVariables(const Graph& step) {
  std::vector<std::string> names;
  for (const Node& node : step.nodes) {
    if (node.op == "ApplyGradient" || node.op == "ApplySparseGradient") {
      names.push_back(
          node.attributes.Get<std::string>(kVariableAttribute).value());
    }
  }
  return names;
}

}  // namespace

SynchronousSteps::SynchronousSteps(ClusterConnection* connection,
                                   const Graph& step)
    : connection_(connection),
      gradient_count_(connection->options().rounds.gradient_count),
      variables_(TrainedVariables(step)) {}

absl::Status SynchronousSteps::BeginRun(std::optional<int> recorded) {
  if (!is_on()) return absl::OkStatus();
  if (recorded.has_value()) {
    finished_count_ = *recorded;
  } else {
    // Variables of which a step does not use all gradients have lower counts.
    ASSIGN_OR_RETURN(const std::vector<int64_t> counts,
                     connection_->GradientCounts(variables_));
    finished_count_ =
        counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  }
  connection_->dispatcher().BeginRound(open_round_gradients());
  return absl::OkStatus();
}

}  // namespace muster
