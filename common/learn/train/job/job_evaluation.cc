#include "common/learn/train/job/job_evaluation.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/layer.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/adapt.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/job/resolved_job.h"
#include "common/learn/train/model.h"

namespace muster {

absl::StatusOr<Model> LoadTrainedModel(ResolvedJob& resolved,
                                       absl::string_view field,
                                       const Dataset& data,
                                       const std::string& weights,
                                       Strategy& strategy) {
  if (NeedsDataBesideWeights(resolved.layer())) {
    ASSIGN_OR_RETURN(const Dataset data_to_adapt, resolved.DataToAdapt());
    RETURN_IF_ERROR(Adapt(resolved.layer(), data_to_adapt));
  }
  // Makes the weights of the right shapes. LoadWeights() replaces the values.
  RETURN_IF_ERROR(Adapt(resolved.layer(), data.Take(1)));
  Model model(resolved.layer());
  ASSIGN_OR_RETURN(CompileOptions compile_options,
                   resolved.BuildCompileOptions(/*seed=*/0));
  RETURN_IF_ERROR(model.Compile(strategy, std::move(compile_options)));
  const size_t input_count =
      static_cast<size_t>(std::max(1, resolved.layer()->input_count()));
  const absl::Span<const TensorType> types = data.element_types();
  if (types.size() < input_count) {
    return absl::InvalidArgumentError(absl::StrCat(
        field, ": the model has ", input_count,
        " inputs, the data's examples have ", types.size(), " components"));
  }
  absl::Status fits = model.Build(types.subspan(0, input_count));
  if (fits.ok()) fits = model.LoadWeights(weights);
  if (fits.ok()) return model;
  return absl::Status(
      fits.code(),
      absl::StrCat(field, ": cannot use the weights ", weights, " for inputs ",
                   absl::StrJoin(types.subspan(0, input_count), ", ",
                                 [](std::string* text, const TensorType& type) {
                                   absl::StrAppend(text, type.ToString());
                                 }),
                   ": ", fits.message()));
}

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
