#include "common/learn/train/job/job.h"

#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/base/clock.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/weight.h"
#include "common/learn/strategy/default_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/adapt.h"
#include "common/learn/train/atomic_file.h"
#include "common/learn/train/callback.h"
#include "common/learn/train/evaluator/checkpoint_evaluator.h"
#include "common/learn/train/evaluator/train_and_evaluate.h"
#include "common/learn/train/history.h"
#include "common/learn/train/job/job_callbacks.h"
#include "common/learn/train/job/job_checkpoints.h"
#include "common/learn/train/job/job_data.h"
#include "common/learn/train/job/job_evaluator.h"
#include "common/learn/train/job/job_fit.h"
#include "common/learn/train/job/job_model.h"
#include "common/learn/train/job/job_text.h"
#include "common/learn/train/job/local_strategies.h"
#include "common/learn/train/model.h"
#include "common/learn/train/non_finite.h"
#include "common/learn/train/output_folders.h"
#include "common/learn/train/progress_bar.h"
#include "common/learn/train/run_summary.h"
#include "common/learn/train/weights_hash.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

// Keras' default of fit().
constexpr int64_t kBatchSize = 32;

absl::StatusOr<LayerPtr> BuildModelOf(const proto::TrainingJob& job) {
  DTypePolicy policy;
  if (!job.dtype_policy().empty()) {
    ASSIGN_OR_RETURN(policy, ParseDTypePolicy(job.dtype_policy()));
  }
  const DTypePolicyScope scope(policy);
  return BuildJobModel(job.model());
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const auto refuse = [&](absl::string_view why) {
    return absl::NotFoundError(
        absl::StrCat("cannot read job file ", path, ": ", why));
  };
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return refuse("it is a folder");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return refuse(std::strerror(errno));
  std::string content((std::istreambuf_iterator<char>(file)),
                      std::istreambuf_iterator<char>());
  if (file.bad()) return refuse(std::strerror(errno));
  if (absl::StripAsciiWhitespace(content).empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     ": the job file is empty; expected at least model, train, "
                     "optimizer and loss, as in examples/digits/digits.job"));
  }
  return content;
}

absl::Status ExpectAtLeastOne(absl::string_view field, int64_t value) {
  if (value >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must be at least 1, got ", value));
}

// The data of a job; what it does not name is unset.
struct JobDatasets {
  Dataset train;
  std::optional<Dataset> validation;
  std::optional<Dataset> test;
};

absl::StatusOr<JobDatasets> BuildJobDatasets(const proto::TrainingJob& job,
                                             uint64_t seed) {
  const int64_t batch_size =
      job.has_batch_size() ? job.batch_size() : kBatchSize;
  const DType label_type = LabelTypeFor(job.loss());
  JobDatasets datasets;
  if (job.validation_split() != 0) {
    ASSIGN_OR_RETURN(
        SplitJobData split,
        BuildSplitJobData(job.train(), "train", label_type,
                          job.validation_split(), batch_size, seed));
    datasets.train = std::move(split.train);
    datasets.validation = std::move(split.validation);
  } else {
    ASSIGN_OR_RETURN(
        datasets.train,
        BuildJobData(job.train(), "train", label_type, batch_size, seed));
  }
  if (job.has_validation()) {
    ASSIGN_OR_RETURN(datasets.validation,
                     BuildJobData(job.validation(), "validation", label_type,
                                  batch_size, seed));
  }
  if (job.has_test()) {
    ASSIGN_OR_RETURN(datasets.test, BuildJobData(job.test(), "test", label_type,
                                                 batch_size, seed));
  }
  return datasets;
}

FitOptions BuildFitOptions(const proto::TrainingJob& job,
                           const JobDatasets& datasets,
                           const RunJobOptions& options) {
  FitOptions fit = BuildJobFitOptions(job);
  fit.verbose = options.verbose;
  fit.output = options.output;
  fit.validation_data = datasets.validation;
  return fit;
}

absl::StatusOr<std::string> HashOf(const Model& model) {
  ASSIGN_OR_RETURN(std::vector<Tensor> values, model.GetWeights());
  std::map<std::string, Tensor> by_name;
  const std::vector<Weight> weights = model.weights();
  for (size_t i = 0; i < weights.size(); ++i) {
    by_name[weights[i].name()] = std::move(values[i]);
  }
  return HashWeights(by_name);
}

// Where the run writes beside what its callbacks say.
absl::Status PrepareFolders(const proto::TrainingJob& job,
                            const std::string& run_dir,
                            const std::vector<Callback*>& callbacks) {
  std::vector<std::string> folders = {run_dir.empty() ? "." : run_dir};
  const std::string& recovery_dir =
      job.strategy().parameter_server().recovery_dir();
  if (!recovery_dir.empty()) folders.push_back(recovery_dir);
  RETURN_IF_ERROR(EnsureWritable(folders));
  return EnsureWritable(OutputFoldersOf(callbacks));
}

absl::StatusOr<uint64_t> SeedOf(const proto::TrainingJob& job,
                                const RunJobOptions& options,
                                Strategy& strategy) {
  if (options.seed.has_value()) return *options.seed;
  if (job.has_seed()) return job.seed();
  ASSIGN_OR_RETURN(const std::optional<uint64_t> before,
                   SeedToGoOnWith(job, strategy));
  if (before.has_value()) return *before;
  const std::optional<uint64_t> shared = strategy.agreement().shared_seed();
  return shared.has_value() ? *shared : RandomIdentity();
}

// What Fit() does for the values of training.
void KeepNonFinite(const std::string& name, double value, History* history) {
  if (std::isfinite(value) || history->first_non_finite.has_value()) return;
  history->first_non_finite = {
      .name = name,
      .value = value,
      .epoch = history->epoch.empty() ? 0 : history->epoch.back(),
      .step = history->step_count};
}

// Says how the model does on the test data, and keeps it in the summary.
absl::Status Test(Model& model, const Dataset& data,
                  const RunJobOptions& options, std::ostream& output,
                  RunSummary* summary) {
  ASSIGN_OR_RETURN(const Logs logs,
                   model.Evaluate(data, {.verbose = Verbosity::kSilent}));
  std::string line = "Test";
  const char* separator = " - ";
  for (const auto& [name, value] : logs) {
    const std::string shown_name = absl::StrCat("test_", name);
    summary->final[shown_name] = value;
    KeepNonFinite(shown_name, value, &summary->history);
    absl::StrAppendFormat(&line, "%s%s: %.4f", separator, name, value);
  }
  if (options.verbose != Verbosity::kSilent) output << line << std::endl;
  return absl::OkStatus();
}

// Called by all processes that train in sync; the chief writes.
absl::Status SaveFinalWeights(Model& model, const RunJobOptions& options,
                              std::ostream& output, RunSummary* summary) {
  const std::string prefix =
      (std::filesystem::path(options.run_dir) / "final_weights").string();
  RETURN_IF_ERROR(model.SaveWeights(prefix));
  summary->final_weights = prefix;
  if (options.verbose != Verbosity::kSilent) {
    output << "Final weights: " << prefix << std::endl;
  }
  return absl::OkStatus();
}

absl::Status WriteSummary(const RunSummary& summary,
                          const RunJobOptions& options, std::ostream& output) {
  const std::string path =
      (std::filesystem::path(options.run_dir) / "summary.json").string();
  RETURN_IF_ERROR(WriteFileAtomically(path, ToJson(summary)));
  if (options.verbose != Verbosity::kSilent) {
    output << "Summary: " << path << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ResolvedJob> ResolveJobFile(const std::string& path,
                                           const JobSettings& settings,
                                           const std::string& run_dir) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  JobSettings builtins = {{"job_dir", folder}};
  if (!run_dir.empty()) builtins["run_dir"] = run_dir;
  ASSIGN_OR_RETURN(JobText read, ParseJobText(text, path, settings, builtins));
  const absl::Status valid = ValidateJob(read.job);
  if (!valid.ok()) {
    return absl::Status(valid.code(),
                        absl::StrCat(path, ": ", valid.message()));
  }
  return ResolvedJob{.job = std::move(read.job),
                     .agreed_text = std::move(read.agreed_text),
                     .file = path,
                     .run_dir = run_dir};
}

absl::StatusOr<proto::TrainingJob> ReadJobFile(const std::string& path,
                                               const JobSettings& settings,
                                               const std::string& run_dir) {
  ASSIGN_OR_RETURN(ResolvedJob resolved,
                   ResolveJobFile(path, settings, run_dir));
  return std::move(resolved.job);
}

absl::Status ValidateJob(const proto::TrainingJob& job) {
  RETURN_IF_ERROR(BuildModelOf(job).status());
  RETURN_IF_ERROR(BuildJobCompileOptions(job, /*seed=*/0).status());
  RETURN_IF_ERROR(BuildJobInput(job.input()).status());
  RETURN_IF_ERROR(BuildJobCallbacks(job).status());
  if (job.has_evaluator()) {
    RETURN_IF_ERROR(BuildJobEvaluator(job, /*run_dir=*/"").status());
  }
  RETURN_IF_ERROR(CheckJobStrategy(job.strategy()));
  if (!job.has_train()) {
    return absl::InvalidArgumentError(
        "train is missing; expected for example train { csv { path: "
        "\"train.csv\" label: \"label\" } }");
  }
  if (job.has_batch_size()) {
    RETURN_IF_ERROR(ExpectAtLeastOne("batch_size", job.batch_size()));
  }
  return CheckJobFit(job);
}

StrategyFactory DefaultStrategyFactory(int thread_count) {
  return [thread_count](const proto::TrainingJob& job) {
    return BuildLocalStrategy(job, thread_count);
  };
}

absl::StatusOr<RunSummary> RunJob(const proto::TrainingJob& job,
                                  const StrategyFactory& make_strategy,
                                  const RunJobOptions& given) {
  const absl::Time start = Clock::Real()->Now();
  RETURN_IF_ERROR(ValidateJob(job));
  // Mistakes in the data are better found before a cluster is waited for.
  RETURN_IF_ERROR(BuildJobDatasets(job, /*seed=*/0).status());
  ASSIGN_OR_RETURN(const std::vector<std::unique_ptr<Callback>> callbacks,
                   BuildJobCallbacks(job, given.output));
  std::vector<Callback*> borrowed_callbacks;
  for (const auto& callback : callbacks) {
    borrowed_callbacks.push_back(callback.get());
  }
  if (given.is_chief) {
    RETURN_IF_ERROR(PrepareFolders(job, given.run_dir, borrowed_callbacks));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Strategy> strategy,
                   make_strategy(job));
  RunJobOptions options = given;
  // What all processes would say alike is said once.
  if (!strategy->is_chief()) options.verbose = Verbosity::kSilent;
  std::ostream& output =
      options.output == nullptr ? std::cout : *options.output;
  ASSIGN_OR_RETURN(const uint64_t seed, SeedOf(job, options, *strategy));
  RunSummary summary{.muster_version = options.muster_version,
                     .job_file = options.job_file,
                     .strategy = std::string(strategy->name()),
                     .seed = seed};

  ASSIGN_OR_RETURN(const LayerPtr layer, BuildModelOf(job));
  ASSIGN_OR_RETURN(CompileOptions compile_options,
                   BuildJobCompileOptions(job, summary.seed));
  ASSIGN_OR_RETURN(const JobDatasets datasets,
                   BuildJobDatasets(job, summary.seed));
  Model model(layer);
  RETURN_IF_ERROR(model.Compile(*strategy, std::move(compile_options)));
  RETURN_IF_ERROR(AdaptNormalization(layer, datasets.train));
  FitOptions fit = BuildFitOptions(job, datasets, options);
  fit.callbacks = borrowed_callbacks;
  // Such a run fails too, but with its summary written.
  const bool fails_on_non_finite = std::exchange(fit.fail_on_non_finite, false);
  RETURN_IF_ERROR(
      TrainUntilTheEnd(*strategy, JobCheckpointDir(job), [&]() -> absl::Status {
        ASSIGN_OR_RETURN(summary.history, model.Fit(datasets.train, fit));
        return absl::OkStatus();
      }));
  for (const auto& [name, values] : summary.history.history) {
    summary.final[name] = values.back();
  }
  if (datasets.test.has_value()) {
    RETURN_IF_ERROR(Test(model, *datasets.test, options, output, &summary));
  }
  ASSIGN_OR_RETURN(summary.weights_sha256, HashOf(model));
  // The summary is written all the same.
  absl::Status saved;
  if (!job.has_save_final_weights() || job.save_final_weights()) {
    saved = SaveFinalWeights(model, options, output, &summary);
  }
  summary.report = strategy->Report();
  summary.total_seconds = absl::ToDoubleSeconds(Clock::Real()->Now() - start);
  if (strategy->is_chief()) {
    RETURN_IF_ERROR(WriteSummary(summary, options, output));
  }
  RETURN_IF_ERROR(saved);
  if (fails_on_non_finite && summary.history.first_non_finite.has_value()) {
    return NonFiniteError(*summary.history.first_non_finite);
  }
  return summary;
}

absl::Status EvaluateJob(const proto::TrainingJob& job,
                         const RunJobOptions& options) {
  RETURN_IF_ERROR(ValidateJob(job));
  ASSIGN_OR_RETURN(CheckpointEvaluator::Options evaluator_options,
                   BuildJobEvaluator(job, options.run_dir));
  if (!job.evaluator().has_timeout_seconds()) {
    evaluator_options.timeout = options.evaluator_timeout;
  }
  RETURN_IF_ERROR(EnsureWritable({evaluator_options.log_dir}));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Strategy> strategy,
      DefaultStrategy::Create({.thread_count = options.thread_count}));
  // Nothing but the order of the data comes from it: weights are restored.
  const uint64_t seed = options.seed.value_or(job.seed());
  ASSIGN_OR_RETURN(const JobDatasets datasets, BuildJobDatasets(job, seed));
  const std::optional<Dataset>& data =
      datasets.validation.has_value() ? datasets.validation : datasets.test;
  if (!data.has_value()) {
    return absl::InvalidArgumentError(
        "validation is missing: an evaluator needs data, `validation`, "
        "`validation_split` or `test`");
  }
  ASSIGN_OR_RETURN(const LayerPtr layer, BuildModelOf(job));
  ASSIGN_OR_RETURN(CompileOptions compile_options,
                   BuildJobCompileOptions(job, seed));
  Model model(layer);
  RETURN_IF_ERROR(model.Compile(*strategy, std::move(compile_options)));
  RETURN_IF_ERROR(AdaptNormalization(layer, datasets.train));
  ASSIGN_OR_RETURN(
      const std::shared_ptr<CheckpointEvaluator> evaluator,
      CheckpointEvaluator::Create(&model, *data, std::move(evaluator_options)));
  if (options.on_interruptible != nullptr) {
    options.on_interruptible([evaluator] { evaluator->Interrupt(); });
  }
  return evaluator->Run().status();
}

}  // namespace muster
