#include "common/learn/train/job/job_keras_file.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/io/storage/disk.h"
#include "common/io/storage/sha256.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/loss.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/job/job_config_reader.h"
#include "common/learn/train/keras/keras_compile_config.h"
#include "common/learn/train/keras/keras_model.h"
#include "common/learn/train/keras/keras_object.h"
#include "common/learn/train/keras/keras_weights.h"
#include "common/learn/train/model.h"
#include "google/protobuf/descriptor.h"
#include "proto/optimizer.pb.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

// The model's JSON without the compile settings that the job replaces, so that
// Muster need not have those.
KerasJson WithoutReplaced(const proto::TrainingJob& job, const Layer& layers,
                          KerasJson config) {
  if (!FindMember(config, "compile_config").is_object()) return config;
  KerasJson& compiled = config["compile_config"];
  if (job.has_optimizer()) compiled.erase("optimizer");
  if (!job.metrics().empty()) compiled.erase("metrics");
  if (!job.weighted_metrics().empty()) compiled.erase("weighted_metrics");
  if (const std::string loss = KindOf(job.loss()); !loss.empty()) {
    compiled.erase("loss_weights");
    // "accuracy" depends on the loss.
    compiled["loss"] = KerasJson::array();
    for (size_t i = 0; i < layers.output_names().size(); ++i) {
      compiled["loss"].push_back(loss);
    }
  }
  return config;
}

bool HasOptimizer(const CompileOptions& settings) {
  return settings.optimizer.has_rule();
}

bool HasLoss(const CompileOptions& settings) {
  if (settings.loss) return true;
  for (const Loss& loss : settings.losses) {
    if (loss) return true;
  }
  return false;
}

absl::StatusOr<CompileOptions> SettingsOf(const proto::TrainingJob& job,
                                          const KerasModel& model) {
  const std::string& path = job.model().keras();
  absl::StatusOr<std::optional<CompileOptions>> compiled =
      CompileOptionsFromKeras(WithoutReplaced(job, *model.layers, model.config),
                              *model.layers);
  if (!compiled.ok()) {
    return absl::Status(
        compiled.status().code(),
        absl::StrCat(path, ": ", compiled.status().message(),
                     "; what the job has itself is not taken from the file"));
  }
  CompileOptions settings = compiled->value_or(CompileOptions());
  if (!job.has_optimizer() && !HasOptimizer(settings)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "optimizer is missing, and ", path,
        " has none: the model was not compiled before it was saved; expected "
        "for example optimizer { adam {} }"));
  }
  if (!job.has_loss() && !HasLoss(settings)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "loss is missing, and ", path,
        " has none: the model was not compiled before it was saved; expected "
        "for example loss { mean_squared_error {} }"));
  }
  return settings;
}

absl::StatusOr<std::string> HashOfFile(const std::string& path) {
  ASSIGN_OR_RETURN(
      const std::string bytes,
      ReadFile(Disk::Real(), path, std::numeric_limits<int64_t>::max()));
  return Sha256Of(bytes);
}

}  // namespace

absl::StatusOr<JobKerasFile> ReadJobKerasFile(const proto::TrainingJob& job) {
  if (!job.dtype_policy().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("dtype_policy: the layers of ", job.model().keras(),
                     " have their own; take dtype_policy out of the job"));
  }
  JobKerasFile file{.path = job.model().keras()};
  ASSIGN_OR_RETURN(file.model, ReadKerasModel(Disk::Real(), file.path));
  ASSIGN_OR_RETURN(file.sha256, HashOfFile(file.path));
  // Calls the layers: the shapes of their outputs say what "accuracy" is.
  const Model model(file.model.layers);
  ASSIGN_OR_RETURN(file.settings, SettingsOf(job, file.model));
  file.continues_training = HasOptimizer(file.settings) &&
                            job.layer_optimizers().empty() &&
                            HasOptimizerState(*file.model.weights);
  if (file.continues_training) {
    file.settings.auto_scale_loss = HasLossScale(*file.model.weights);
  }
  return file;
}

absl::Status RestoreFromJobKerasFile(const JobKerasFile& file,
                                     const std::string& run_dir, Model* model) {
  return model->RestoreFromKeras(JoinPath(run_dir, BaseName(file.path)),
                                 *file.model.weights,
                                 /*values_only=*/!file.continues_training);
}

}  // namespace muster
