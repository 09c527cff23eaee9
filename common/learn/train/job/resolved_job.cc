#include "common/learn/train/job/resolved_job.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/core/base/quoted_text.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/small_file.h"
#include "common/core/tensor/dtype.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/layer.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/base/layer_optimizers.h"
#include "common/learn/train/base/step_graphs.h"
#include "common/learn/train/job/job_callbacks.h"
#include "common/learn/train/job/job_canonical.h"
#include "common/learn/train/job/job_data.h"
#include "common/learn/train/job/job_evaluator.h"
#include "common/learn/train/job/job_fit.h"
#include "common/learn/train/job/job_keras_file.h"
#include "common/learn/train/job/job_model.h"
#include "common/learn/train/job/job_schema.h"
#include "common/learn/train/job/job_strategy.h"
#include "common/learn/train/job/job_text.h"
#include "common/learn/train/model.h"
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

// Reports layers that the model does not have, unless it has no weights before
// it sees data: then training does.
absl::Status CheckLayersOf(const CompileOptions& options,
                           const LayerPtr& layer) {
  if (options.layer_optimizers.empty()) return absl::OkStatus();
  const Model model(layer);  // Names the layers.
  const std::vector<TensorType> inputs = layer->input_types();
  if (inputs.empty() || !TraceForward(layer, inputs).ok()) {
    return absl::OkStatus();
  }
  return ModelOptimizers(options.optimizer, options.layer_optimizers)
      .CheckMatch(model.weights());
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  absl::StatusOr<std::string> content = ReadSmallFile(path);
  if (!content.ok()) {
    return absl::Status(content.status().code(),
                        absl::StrCat("--job: ", content.status().message()));
  }
  if (absl::StripAsciiWhitespace(*content).empty()) {
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

// All checks but those of the model, which is checked by building it, and of
// `options`, what it is compiled with.
absl::Status CheckAroundModel(const proto::TrainingJob& job,
                              const CompileOptions& options) {
  RETURN_IF_ERROR(BuildJobInput(job.input()).status());
  RETURN_IF_ERROR(BuildJobCallbacks(job).status());
  if (job.has_evaluator()) {
    RETURN_IF_ERROR(BuildJobEvaluator(job, /*run_dir=*/"", options).status());
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

// The sources of a job's data.
struct JobSources {
  JobSource train;
  std::optional<JobSource> validation;
  std::optional<JobSource> test;
};

absl::StatusOr<JobSources> OpenSources(const proto::TrainingJob& job,
                                       DType label_type,
                                       const std::vector<ColumnInput>& inputs) {
  ASSIGN_OR_RETURN(JobSource train,
                   JobSource::Open(job.train(), "train", label_type,
                                   job.validation_split(), inputs));
  JobSources sources{.train = std::move(train)};
  if (job.has_validation()) {
    ASSIGN_OR_RETURN(sources.validation,
                     JobSource::Open(job.validation(), "validation", label_type,
                                     /*validation_split=*/0, inputs));
  }
  if (job.has_test()) {
    ASSIGN_OR_RETURN(sources.test,
                     JobSource::Open(job.test(), "test", label_type,
                                     /*validation_split=*/0, inputs));
  }
  return sources;
}

}  // namespace

struct ResolvedJob::State {
  proto::TrainingJob job;
  std::string file;
  std::string run_dir;
  CanonicalJob agreed;
  LayerPtr layer;
  std::optional<JobKerasFile> keras_file;
  std::optional<JobSources> sources;
};

ResolvedJob::ResolvedJob(std::unique_ptr<State> state)
    : state_(std::move(state)) {}
ResolvedJob::~ResolvedJob() = default;
ResolvedJob::ResolvedJob(ResolvedJob&&) noexcept = default;
ResolvedJob& ResolvedJob::operator=(ResolvedJob&&) noexcept = default;

absl::StatusOr<ResolvedJob> ResolvedJob::FromFile(const std::string& path,
                                                  const JobSettings& settings,
                                                  const std::string& run_dir) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  JobSettings builtins = {{"job_dir", folder}};
  if (!run_dir.empty()) builtins["run_dir"] = run_dir;
  ASSIGN_OR_RETURN(JobText read, ParseJobText(text, path, settings, builtins));
  absl::StatusOr<ResolvedJob> resolved = FromProto(read.job);
  if (!resolved.ok()) {
    return absl::Status(resolved.status().code(),
                        absl::StrCat(path, ": ", resolved.status().message()));
  }
  resolved->state_->file = path;
  resolved->state_->run_dir = run_dir;
  resolved->SetAgreed(std::move(read.agreed));
  return resolved;
}

absl::StatusOr<ResolvedJob> ResolvedJob::FromProto(
    const proto::TrainingJob& job) {
  auto state = std::make_unique<State>();
  state->job = job;
  if (job.model().has_keras()) {
    ASSIGN_OR_RETURN(state->keras_file, ReadJobKerasFile(job));
    state->layer = state->keras_file->model.layers;
  } else {
    ASSIGN_OR_RETURN(state->layer, BuildModelOf(job));
  }
  ResolvedJob resolved(std::move(state));
  ASSIGN_OR_RETURN(const CompileOptions options,
                   resolved.BuildCompileOptions(/*seed=*/0));
  RETURN_IF_ERROR(CheckLayersOf(options, resolved.layer()));
  RETURN_IF_ERROR(CheckAroundModel(job, options));
  resolved.SetAgreed(CanonicalForm(*WithKinds(job), /*locations=*/nullptr));
  return resolved;
}

void ResolvedJob::SetAgreed(CanonicalJob agreed) {
  state_->agreed = std::move(agreed);
  if (state_->keras_file.has_value()) {
    SetCanonicalValue("model.keras",
                      absl::StrCat("sha256:", state_->keras_file->sha256),
                      &state_->agreed);
  }
}

const proto::TrainingJob& ResolvedJob::job() const { return state_->job; }
const std::string& ResolvedJob::file() const { return state_->file; }
const std::string& ResolvedJob::run_dir() const { return state_->run_dir; }
const CanonicalJob& ResolvedJob::agreed() const { return state_->agreed; }
const LayerPtr& ResolvedJob::layer() const { return state_->layer; }
const JobKerasFile* ResolvedJob::keras_file() const {
  return state_->keras_file.has_value() ? &*state_->keras_file : nullptr;
}

absl::StatusOr<CompileOptions> ResolvedJob::BuildCompileOptions(
    uint64_t seed) const {
  const JobKerasFile* const file = keras_file();
  return BuildJobCompileOptions(
      state_->job, seed, file == nullptr ? CompileOptions() : file->settings);
}

int64_t ResolvedJob::batch_size() const {
  return state_->job.has_batch_size() ? state_->job.batch_size() : kBatchSize;
}

absl::Status ResolvedJob::OpenData() {
  if (state_->sources.has_value()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const CompileOptions options,
                   BuildCompileOptions(/*seed=*/0));
  const DType label_type = LabelTypeOf(
      options.losses.empty() ? options.loss : options.losses.front());
  ASSIGN_OR_RETURN(
      state_->sources,
      OpenSources(state_->job, label_type, ColumnInputsOf(*state_->layer)));
  // Stages that no data can pass through are found too.
  return Datasets(/*seed=*/0).status();
}

std::vector<std::string> ResolvedJob::UnusedColumns() const {
  std::vector<std::string> lines;
  if (!state_->sources.has_value()) return lines;
  const JobSources& sources = *state_->sources;
  const auto add = [&](absl::string_view field, const JobSource& source) {
    const bool is_said = !lines.empty() && source.unused_columns() ==
                                               sources.train.unused_columns();
    if (source.unused_columns().empty() || is_said) return;
    lines.push_back(absl::StrCat(
        field, ": the model does not use the columns ",
        absl::StrJoin(source.unused_columns(), ", ",
                      [](std::string* text, const std::string& name) {
                        absl::StrAppend(text, QuotedText(name));
                      })));
  };
  add("train", sources.train);
  if (sources.validation.has_value()) add("validation", *sources.validation);
  if (sources.test.has_value()) add("test", *sources.test);
  return lines;
}

absl::StatusOr<JobDatasets> ResolvedJob::Datasets(uint64_t seed) {
  if (!state_->sources.has_value()) RETURN_IF_ERROR(OpenData());
  const proto::TrainingJob& job = state_->job;
  const int64_t batch_size = this->batch_size();
  const JobSources& sources = *state_->sources;
  JobDatasets datasets;
  ASSIGN_OR_RETURN(datasets.train, sources.train.Batches(batch_size, seed));
  if (job.validation_split() != 0) {
    ASSIGN_OR_RETURN(datasets.validation,
                     sources.train.BatchesInOrder(batch_size, seed));
  }
  if (sources.validation.has_value()) {
    ASSIGN_OR_RETURN(datasets.validation,
                     sources.validation->Batches(batch_size, seed));
  }
  if (sources.test.has_value()) {
    ASSIGN_OR_RETURN(datasets.test, sources.test->Batches(batch_size, seed));
  }
  return datasets;
}

absl::StatusOr<JobDatasets> ResolvedJob::DatasetsInOrder() {
  RETURN_IF_ERROR(OpenData());
  const JobSources& sources = *state_->sources;
  JobDatasets datasets;
  ASSIGN_OR_RETURN(datasets.train, sources.train.TrainingInOrder(batch_size()));
  if (state_->job.validation_split() != 0) {
    ASSIGN_OR_RETURN(datasets.validation,
                     sources.train.BatchesInOrder(batch_size(), /*seed=*/0));
  }
  if (sources.validation.has_value()) {
    ASSIGN_OR_RETURN(datasets.validation,
                     sources.validation->TrainingInOrder(batch_size()));
  }
  if (sources.test.has_value()) {
    ASSIGN_OR_RETURN(datasets.test,
                     sources.test->TrainingInOrder(batch_size()));
  }
  return datasets;
}

absl::StatusOr<Dataset> ResolvedJob::DataToAdapt() {
  RETURN_IF_ERROR(OpenData());
  return state_->sources->train.TrainingInOrder(batch_size());
}

absl::Status ValidateJob(const proto::TrainingJob& job) {
  return ResolvedJob::FromProto(job).status();
}

absl::StatusOr<proto::TrainingJob> ReadJobFile(const std::string& path,
                                               const JobSettings& settings,
                                               const std::string& run_dir) {
  ASSIGN_OR_RETURN(const ResolvedJob resolved,
                   ResolvedJob::FromFile(path, settings, run_dir));
  return resolved.job();
}

}  // namespace muster
