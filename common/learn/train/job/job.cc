#include "common/learn/train/job/job.h"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/status_message.h"
#include "common/core/system/clock.h"
#include "common/core/system/log.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/io/storage/disk.h"
#include "common/io/storage/object_url.h"
#include "common/learn/nn/weight.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/strategy/training_recovery.h"
#include "common/learn/strategy/worker_agreement.h"
#include "common/learn/train/adapt.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/log_lists.h"
#include "common/learn/train/base/non_finite.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/evaluator/checkpoint_evaluator.h"
#include "common/learn/train/evaluator/train_and_evaluate.h"
#include "common/learn/train/job/job_callbacks.h"
#include "common/learn/train/job/job_checkpoints.h"
#include "common/learn/train/job/job_evaluator.h"
#include "common/learn/train/job/job_fit.h"
#include "common/learn/train/job/job_keras_file.h"
#include "common/learn/train/job/job_strategy.h"
#include "common/learn/train/job/loss_cost.h"
#include "common/learn/train/job/resolved_job.h"
#include "common/learn/train/model.h"
#include "common/learn/train/output_folders.h"
#include "common/learn/train/report_page.h"
#include "common/learn/train/run_summary.h"
#include "common/learn/train/weights_hash.h"
#include "common/net/collectives/peers/group_error.h"
#include "common/net/process/preemption_notice.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

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

std::string AbsoluteFolder(const std::string& folder) {
  if (IsObjectUrl(folder)) return folder;
  std::error_code error;
  const std::string absolute =
      std::filesystem::absolute(folder.empty() ? "." : folder, error).string();
  return error ? folder : absolute;
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

using JobCallbacks = std::vector<std::unique_ptr<Callback>>;

std::vector<Callback*> Borrow(const JobCallbacks& callbacks) {
  std::vector<Callback*> borrowed;
  for (const auto& callback : callbacks) borrowed.push_back(callback.get());
  return borrowed;
}

// Finds mistakes in the data and in folders before a cluster is waited for.
absl::StatusOr<JobCallbacks> Prepare(ResolvedJob& resolved,
                                     const RunJobOptions& options) {
  RETURN_IF_ERROR(resolved.OpenData());
  ASSIGN_OR_RETURN(JobCallbacks callbacks,
                   BuildJobCallbacks(resolved.job(), options.output));
  if (!options.is_chief) return callbacks;
  for (const std::string& line : resolved.UnusedColumns()) LOG(INFO) << line;
  RETURN_IF_ERROR(
      PrepareFolders(resolved.job(), options.run_dir, Borrow(callbacks)));
  if (options.on_run_dir) {
    RETURN_IF_ERROR(options.on_run_dir(AbsoluteFolder(options.run_dir)));
  }
  return callbacks;
}

// Collective. The chief has been told in Prepare().
absl::Status TellRunDir(const RunJobOptions& options,
                        const WorkerAgreement& agreement) {
  ASSIGN_OR_RETURN(const std::string folder,
                   agreement.FromChief("the folder of the run",
                                       AbsoluteFolder(options.run_dir)));
  if (options.is_chief || !options.on_run_dir) return absl::OkStatus();
  return options.on_run_dir(folder);
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

Verbosity VerbosityOf(const Strategy& strategy, const RunJobOptions& given) {
  return strategy.is_chief() ? given.verbose : Verbosity::kSilent;
}

// Adds what is known at the end of a run.
void Complete(const Strategy& strategy, absl::Time start, RunSummary* summary) {
  summary->report = strategy.Report();
  summary->run_seconds = absl::ToDoubleSeconds(Clock::Real()->Now() - start);
}

absl::Status AdaptLayers(ResolvedJob& resolved, const Strategy& strategy) {
  ASSIGN_OR_RETURN(const Dataset data, resolved.DataToAdapt());
  return AdaptOnChief(resolved.layer(), data, strategy.agreement());
}

// Those of the file of Keras, if the job's model is one.
absl::Status RestoreFirstWeights(const ResolvedJob& resolved,
                                 const RunJobOptions& options, Model* model) {
  const JobKerasFile* const file = resolved.keras_file();
  if (file == nullptr) return absl::OkStatus();
  return RestoreFromJobKerasFile(*file, options.run_dir, model);
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
  }
  for (const auto& [name, value] : ShownValues(logs)) {
    absl::StrAppendFormat(&line, "%s%s: %.4f", separator, name, value);
  }
  if (options.verbose != Verbosity::kSilent) output << line << std::endl;
  return absl::OkStatus();
}

struct FinalFiles {
  std::string weights;  // The prefix of a checkpoint.
  std::string model;    // Empty: the model comes from no file of Keras.
};

// Called by all processes that train in sync; the chief writes.
absl::StatusOr<FinalFiles> SaveFinalFiles(Model& model, bool is_from_keras,
                                          const std::string& run_dir) {
  FinalFiles files;
  const std::string prefix = JoinPath(run_dir, "final_weights");
  RETURN_IF_ERROR(model.SaveWeights(prefix));
  files.weights = prefix;
  if (!is_from_keras) return files;
  const std::string path = JoinPath(run_dir, "final_model.keras");
  RETURN_IF_ERROR(model.Save(path));
  files.model = path;
  return files;
}

bool NamesFiles(const RunJobOptions& options) {
  return options.names_files && options.verbose != Verbosity::kSilent;
}

absl::Status SaveFinal(Model& model, bool is_from_keras,
                       const RunJobOptions& options, std::ostream& output,
                       RunSummary* summary) {
  ASSIGN_OR_RETURN(const FinalFiles files,
                   SaveFinalFiles(model, is_from_keras, options.run_dir));
  summary->final_weights = files.weights;
  if (!NamesFiles(options)) return absl::OkStatus();
  output << "Final weights: " << files.weights << std::endl;
  if (files.model.empty()) return absl::OkStatus();
  output << "Final model: " << files.model << std::endl;
  return absl::OkStatus();
}

// `trained`, which a signal has ended, with where the weights are and how the
// job continues.
absl::Status WithSavedFiles(const absl::Status& trained,
                            const FinalFiles& files, const ResolvedJob& job) {
  const std::string model =
      files.model.empty() ? ""
                          : absl::StrCat(", and the model in ", files.model);
  return WithMessage(trained,
                     absl::StrCat(trained.message(), "; the weights are in ",
                                  files.weights, model, "; ",
                                  DescribeResumption(job.job(), job.run_dir(),
                                                     /*was_saved=*/true)));
}

absl::Status WithoutSavedFiles(const absl::Status& trained,
                               const ResolvedJob& job) {
  return WithMessage(
      trained, absl::StrCat(trained.message(), "; the weights are not saved; ",
                            DescribeResumption(job.job(), job.run_dir(),
                                               /*was_saved=*/false)));
}

bool SavesFinal(const proto::TrainingJob& job) {
  return !job.has_save_final_weights() || job.save_final_weights();
}

// Parameter servers write their parts of the final weights.
absl::Status CheckFinalFolder(const proto::TrainingJob& job,
                              const RunJobOptions& options,
                              Strategy& strategy) {
  TrainingRecovery* const recovery = strategy.recovery();
  if (recovery == nullptr || !SavesFinal(job)) return absl::OkStatus();
  return recovery->CheckCanSave(JoinPath(options.run_dir, "final_weights"));
}

// A signal that ends training leaves the final files too.
absl::Status Train(Model& model, const Dataset& data, FitOptions fit,
                   const ResolvedJob& resolved, const RunJobOptions& options,
                   Strategy& strategy, History* history) {
  const proto::TrainingJob& job = resolved.job();
  std::optional<FinalFiles> saved_on_signal;
  if (SavesFinal(job)) {
    fit.on_preemption = [&](Model& stopped) -> absl::Status {
      ASSIGN_OR_RETURN(saved_on_signal,
                       SaveFinalFiles(stopped, resolved.keras_file() != nullptr,
                                      options.run_dir));
      return absl::OkStatus();
    };
  }
  const absl::Status trained =
      TrainUntilTheEnd(strategy, JobCheckpointDir(job), [&]() -> absl::Status {
        ASSIGN_OR_RETURN(*history, model.Fit(data, fit));
        return absl::OkStatus();
      });
  if (trained.ok() || !strategy.is_chief() || !options.names_files) {
    return trained;
  }
  if (saved_on_signal.has_value()) {
    return WithSavedFiles(trained, *saved_on_signal, resolved);
  }
  if (GroupErrorKindOf(trained) == GroupErrorKind::kPeerLost) {
    return WithMessage(trained,
                       absl::StrCat(trained.message(), "; ",
                                    DescribeResumption(job, options.run_dir,
                                                       /*was_saved=*/false)));
  }
  const PreemptionNotice& notice = PreemptionNotice::OfProcess();
  const bool is_unsaved = absl::IsCancelled(trained) && notice.was_received() &&
                          !notice.was_handled();
  return is_unsaved ? WithoutSavedFiles(trained, resolved) : trained;
}

// As SaveFinal().
absl::Status ExportFinal(Model& model, const RunJobOptions& options,
                         std::ostream& output) {
  const std::string path = JoinPath(options.run_dir, "final_model.onnx");
  RETURN_IF_ERROR(model.Export(path));
  if (NamesFiles(options)) {
    output << "Final model for ONNX: " << path << std::endl;
  }
  return absl::OkStatus();
}

// In the folder of the run, which OutputFolders has made.
absl::Status WriteSummary(const RunSummary& summary,
                          const RunJobOptions& options, std::ostream& output) {
  const std::string json = JoinPath(options.run_dir, "summary.json");
  const std::string page = JoinPath(options.run_dir, "report.html");
  RETURN_IF_ERROR(ReplaceFile(Disk::Real(), json, ToJson(summary)));
  RETURN_IF_ERROR(ReplaceFile(Disk::Real(), page, ToHtml(summary)));
  if (NamesFiles(options)) {
    output << "Summary: " << json << "\nReport: " << page << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace

StrategyFactory DefaultStrategyFactory(int thread_count) {
  return [thread_count](const ResolvedJob& job) {
    return BuildLocalStrategy(job.job(), thread_count);
  };
}

absl::StatusOr<RunSummary> RunJob(const proto::TrainingJob& job,
                                  const StrategyFactory& make_strategy,
                                  const RunJobOptions& options) {
  ASSIGN_OR_RETURN(ResolvedJob resolved, ResolvedJob::FromProto(job));
  return RunJob(std::move(resolved), make_strategy, options);
}

absl::StatusOr<RunSummary> RunJob(ResolvedJob resolved,
                                  const StrategyFactory& make_strategy,
                                  const RunJobOptions& given) {
  const absl::Time start = Clock::Real()->Now();
  const proto::TrainingJob& job = resolved.job();
  ASSIGN_OR_RETURN(const JobCallbacks callbacks, Prepare(resolved, given));
  ASSIGN_OR_RETURN(const std::unique_ptr<Strategy> strategy,
                   make_strategy(resolved));
  RETURN_IF_ERROR(TellRunDir(given, strategy->agreement()));
  RunJobOptions options = given;
  // What all say alike is said once. Any worker may become the chief later.
  if (strategy->membership() == nullptr) {
    options.verbose = VerbosityOf(*strategy, given);
  }
  std::ostream& output =
      options.output == nullptr ? std::cout : *options.output;
  ASSIGN_OR_RETURN(const uint64_t seed, SeedOf(job, options, *strategy));
  RunSummary summary{.muster_version = options.muster_version,
                     .job_file = options.job_file,
                     .strategy = std::string(strategy->name()),
                     .seed = seed};

  ASSIGN_OR_RETURN(CompileOptions compile_options,
                   resolved.BuildCompileOptions(summary.seed));
  ASSIGN_OR_RETURN(const JobDatasets datasets, resolved.Datasets(summary.seed));
  RETURN_IF_ERROR(AdaptLayers(resolved, *strategy));
  Model model(resolved.layer());
  RETURN_IF_ERROR(model.Compile(*strategy, std::move(compile_options)));
  RETURN_IF_ERROR(RestoreFirstWeights(resolved, options, &model));
  RETURN_IF_ERROR(CheckFinalFolder(job, options, *strategy));
  FitOptions fit = BuildFitOptions(job, datasets, options);
  fit.callbacks = Borrow(callbacks);
  const bool fails_on_non_finite = fit.fail_on_non_finite;
  fit.history_of_failure = &summary.history;
  const absl::Status trained =
      Train(model, datasets.train, std::move(fit), resolved, options, *strategy,
            &summary.history);
  options.verbose = VerbosityOf(*strategy, given);
  for (const auto& [name, values] : summary.history.history) {
    summary.final[name] = values.back();
  }
  if (!trained.ok()) {
    const bool has_diverged = absl::IsInternal(trained) &&
                              summary.history.first_non_finite.has_value();
    if (!has_diverged || !strategy->is_chief()) return trained;
    Complete(*strategy, start, &summary);
    RETURN_IF_ERROR(WriteSummary(summary, options, output));
    return trained;
  }
  if (datasets.test.has_value()) {
    RETURN_IF_ERROR(Test(model, *datasets.test, options, output, &summary));
  }
  ASSIGN_OR_RETURN(summary.weights_sha256, HashOf(model));
  // The summary is written all the same.
  absl::Status saved;
  if (SavesFinal(job)) {
    saved = SaveFinal(model, resolved.keras_file() != nullptr, options, output,
                      &summary);
  }
  if (job.export_onnx()) saved.Update(ExportFinal(model, options, output));
  Complete(*strategy, start, &summary);
  if (strategy->is_chief()) {
    RETURN_IF_ERROR(WriteSummary(summary, options, output));
  }
  RETURN_IF_ERROR(saved);
  if (fails_on_non_finite && summary.history.first_non_finite.has_value()) {
    return NonFiniteError(*summary.history.first_non_finite);
  }
  return summary;
}

absl::Status EvaluateJob(ResolvedJob resolved, const RunJobOptions& options) {
  const proto::TrainingJob& job = resolved.job();
  // Nothing but the order of the data comes from the seed: weights are
  // restored.
  const uint64_t seed = options.seed.value_or(job.seed());
  ASSIGN_OR_RETURN(CompileOptions compile_options,
                   resolved.BuildCompileOptions(seed));
  ASSIGN_OR_RETURN(CheckpointEvaluator::Options evaluator_options,
                   BuildJobEvaluator(job, options.run_dir, compile_options));
  if (!job.evaluator().has_timeout_seconds()) {
    evaluator_options.timeout = options.evaluator_timeout;
  }
  RETURN_IF_ERROR(EnsureWritable({evaluator_options.log_dir}));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Strategy> strategy,
      DefaultStrategy::Create({.thread_count = options.thread_count}));
  ASSIGN_OR_RETURN(const JobDatasets datasets, resolved.Datasets(seed));
  const std::optional<Dataset>& data =
      datasets.validation.has_value() ? datasets.validation : datasets.test;
  if (!data.has_value()) {
    return absl::InvalidArgumentError(
        "validation is missing: an evaluator needs data, `validation`, "
        "`validation_split` or `test`");
  }
  RETURN_IF_ERROR(AdaptLayers(resolved, *strategy));
  Model model(resolved.layer());
  RETURN_IF_ERROR(model.Compile(*strategy, std::move(compile_options)));
  ASSIGN_OR_RETURN(
      const std::shared_ptr<CheckpointEvaluator> evaluator,
      CheckpointEvaluator::Create(&model, *data, std::move(evaluator_options)));
  if (options.on_interruptible != nullptr) {
    options.on_interruptible([evaluator] { evaluator->Interrupt(); });
  }
  return evaluator->Run().status();
}

}  // namespace muster
