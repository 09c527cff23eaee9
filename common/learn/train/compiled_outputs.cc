#include "common/learn/train/compiled_outputs.h"

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/metric.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/base/step_parts.h"

namespace muster {
namespace {

absl::Status CheckCount(absl::string_view what, size_t count, size_t outputs) {
  if (count == 0 || count == outputs) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("Compile: ", what, " has ", count,
                   " entries, and the model has ", outputs, " outputs"));
}

absl::Status CheckMetrics(absl::string_view what,
                          const std::vector<Metric>& of_all,
                          const std::vector<std::vector<Metric>>& of_each,
                          size_t outputs) {
  RETURN_IF_ERROR(
      CheckCount(absl::StrCat(what, " of outputs"), of_each.size(), outputs));
  if (!of_all.empty() && !of_each.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Compile: both ", what, " and ", what, " of outputs are given"));
  }
  if (of_all.empty() || outputs == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("Compile: the model has ",
                                                 outputs, " outputs; give the ",
                                                 what, " of each"));
}

absl::Status CheckCompileOptions(const CompileOptions& options,
                                 size_t outputs) {
  RETURN_IF_ERROR(CheckCount("losses", options.losses.size(), outputs));
  RETURN_IF_ERROR(
      CheckCount("loss_weights", options.loss_weights.size(), outputs));
  RETURN_IF_ERROR(CheckMetrics("metrics", options.metrics,
                               options.output_metrics, outputs));
  RETURN_IF_ERROR(CheckMetrics("weighted metrics", options.weighted_metrics,
                               options.weighted_output_metrics, outputs));
  if (options.loss && !options.losses.empty()) {
    return absl::InvalidArgumentError(
        "Compile: both loss and losses are given");
  }
  for (const double weight : options.loss_weights) {
    if (std::isfinite(weight)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("Compile: a loss weight is ", weight));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<OutputParts>> CompileOutputs(
    const Layer& layer, const CompileOptions& options) {
  const std::vector<std::string> names = layer.output_names();
  const size_t count = names.size();
  RETURN_IF_ERROR(CheckCompileOptions(options, count));
  const auto metrics = [count](const std::vector<Metric>& of_all,
                               const std::vector<std::vector<Metric>>& of_each,
                               size_t i) {
    if (!of_each.empty()) return of_each[i];
    return count == 1 ? of_all : std::vector<Metric>();
  };
  std::vector<OutputParts> outputs;
  bool has_loss = false;
  for (size_t i = 0; i < count; ++i) {
    OutputParts output{
        .name = names[i],
        .loss = options.losses.empty() ? options.loss : options.losses[i],
        .loss_weight =
            options.loss_weights.empty() ? 1 : options.loss_weights[i],
        .metrics = metrics(options.metrics, options.output_metrics, i),
        .weighted_metrics = metrics(options.weighted_metrics,
                                    options.weighted_output_metrics, i)};
    has_loss |= static_cast<bool>(output.loss);
    outputs.push_back(std::move(output));
  }
  if (!has_loss) {
    return absl::FailedPreconditionError(
        "the model was compiled without a loss");
  }
  return outputs;
}

}  // namespace muster
