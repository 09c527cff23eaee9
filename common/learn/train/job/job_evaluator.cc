#include "common/learn/train/job/job_evaluator.h"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/learn/nn/metric.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/metric_direction.h"
#include "common/learn/train/base/step_results.h"
#include "common/learn/train/callbacks/model_checkpoint.h"
#include "common/learn/train/callbacks/monitor.h"
#include "common/learn/train/evaluator/exporter.h"
#include "common/learn/train/job/job_config_reader.h"
#include "proto/job_model.pb.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using proto::JobEvaluator;

// As logs of an evaluation call the metrics. Those of several outputs have the
// names of the outputs before their own.
std::optional<MetricDirection> DirectionOf(const CompileOptions& compiled,
                                           absl::string_view name) {
  StepResults results;
  const auto add = [&](const std::vector<Metric>& metrics) {
    for (const Metric& metric : metrics) {
      const bool has_name =
          name == metric.name() || absl::EndsWith(name, "_" + metric.name());
      if (has_name) results.metrics.push_back(metric.Named(name));
    }
  };
  add(compiled.metrics);
  add(compiled.weighted_metrics);
  for (const auto& metrics : compiled.output_metrics) add(metrics);
  for (const auto& metrics : compiled.weighted_output_metrics) add(metrics);
  if (absl::EndsWith(name, "_loss")) results.losses.emplace_back(name);
  return muster::DirectionOf(results, name);
}

absl::StatusOr<ExporterOptions> BuildExporter(const JobEvaluator::Exporter& job,
                                              const CompileOptions& compiled) {
  // In the order of ExportWhen.
  static constexpr absl::string_view kWhenNames[] = {"best", "latest", "final"};
  ExporterOptions options{.when = ExportWhen::kBest};
  std::string monitored = "loss";
  MonitorMode mode = MonitorMode::kAuto;
  JobConfigReader reader("exporter", job);
  reader.Visit("name", options.name);
  reader.Visit("when", options.when, kWhenNames);
  reader.Visit("exports_to_keep", options.exports_to_keep);
  reader.Visit("monitor", monitored);
  reader.Visit("mode", mode, kMonitorModeNames);
  RETURN_IF_ERROR(reader.Finish());
  if (options.name.empty()) {
    return absl::InvalidArgumentError("name is missing");
  }
  if (options.when != ExportWhen::kBest) return options;
  ASSIGN_OR_RETURN(const Monitor monitor,
                   Monitor::Create("exporter", monitored, mode,
                                   DirectionOf(compiled, monitored)));
  options.is_better = [monitor](const Logs& best, const Logs& current) {
    const std::optional<double> value = monitor.Find(current);
    return value.has_value() &&
           monitor.IsImprovement(*value, monitor.Find(best));
  };
  return options;
}

}  // namespace

std::string JobCheckpointDir(const proto::TrainingJob& job) {
  if (!job.evaluator().checkpoint_dir().empty()) {
    return job.evaluator().checkpoint_dir();
  }
  for (const proto::JobCallback& callback : job.callbacks()) {
    const auto options =
        FindOptionsOfKind<ModelCheckpointOptions>("model_checkpoint", callback);
    if (options.has_value() && !options->directory.empty()) {
      return options->directory;
    }
  }
  return "";
}

absl::StatusOr<CheckpointEvaluator::Options> BuildJobEvaluator(
    const proto::TrainingJob& job, const std::string& run_dir,
    const CompileOptions& compiled) {
  const JobEvaluator& evaluator = job.evaluator();
  CheckpointEvaluator::Options options;
  options.checkpoint_dir = JobCheckpointDir(job);
  if (options.checkpoint_dir.empty()) {
    return absl::InvalidArgumentError(
        "evaluator: checkpoint_dir is missing, and so is a model_checkpoint "
        "with "
        "a directory; expected for example evaluator { checkpoint_dir: "
        "\"${run_dir}/checkpoints\" }");
  }
  options.log_dir =
      evaluator.log_dir().empty()
          ? (std::filesystem::path(run_dir) / "evaluator").string()
          : evaluator.log_dir();
  if (evaluator.has_steps()) {
    if (evaluator.steps() < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "evaluator: steps must be at least 1, got ", evaluator.steps()));
    }
    options.steps = evaluator.steps();
  }
  if (evaluator.has_timeout_seconds()) {
    // The comparison also refuses what is not a number.
    if (!(evaluator.timeout_seconds() > 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("evaluator: timeout_seconds must be above 0, got ",
                       evaluator.timeout_seconds()));
    }
    options.timeout = absl::Seconds(evaluator.timeout_seconds());
  }
  for (int i = 0; i < evaluator.exporters_size(); ++i) {
    absl::StatusOr<ExporterOptions> exporter =
        BuildExporter(evaluator.exporters(i), compiled);
    if (!exporter.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("evaluator: exporters[", i,
                       "]: ", std::string(exporter.status().message())));
    }
    options.exporters.push_back(*std::move(exporter));
  }
  return options;
}

}  // namespace muster
