#include "common/learn/train/job/job_evaluation.h"

#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/job/job_weights.h"
#include "common/learn/train/job/resolved_job.h"
#include "common/learn/train/model.h"

namespace muster {

absl::StatusOr<Logs> EvaluateWeights(ResolvedJob resolved,
                                     const EvaluateWeightsOptions& options,
                                     std::ostream& output) {
  ASSIGN_OR_RETURN(const JobDatasets datasets, resolved.DatasetsInOrder());
  const bool has_test = datasets.test.has_value();
  const std::optional<Dataset>& data =
      has_test ? datasets.test : datasets.validation;
  if (!data.has_value()) {
    return absl::InvalidArgumentError(
        "test is missing: --evaluate needs data, `test`, `validation` or "
        "`validation_split`");
  }
  const absl::string_view field = has_test ? "test" : "validation";
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Strategy> strategy,
      DefaultStrategy::Create({.thread_count = options.thread_count}));
  ASSIGN_OR_RETURN(Model model, LoadTrainedModel(resolved, field, *data,
                                                 options.weights, *strategy));
  ASSIGN_OR_RETURN(const Logs logs,
                   model.Evaluate(*data, {.verbose = Verbosity::kSilent}));
  output << field;
  for (const auto& [name, value] : logs) {
    output << absl::StrFormat(" - %s: %.4f", name, value);
  }
  output << std::endl;
  return logs;
}

}  // namespace muster
