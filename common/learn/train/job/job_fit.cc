#include "common/learn/train/job/job_fit.h"

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metric.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/train/base/class_weights.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/base/layer_optimizers.h"
#include "common/learn/train/epoch_plan.h"
#include "common/learn/train/job/job_config_reader.h"
#include "proto/optimizer.pb.h"
#include "proto/training_job.pb.h"

namespace muster {

absl::Status CheckJobOptimizer(const proto::Optimizer& optimizer) {
  if (optimizer.rule_case() == proto::Optimizer::RULE_NOT_SET) {
    return absl::InvalidArgumentError(
        "optimizer is missing; expected for example optimizer { adam {} }");
  }
  const absl::Status status = UpdateRule::Create(optimizer).status();
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("optimizer: ", status.message()));
}

absl::StatusOr<Loss> BuildJobLoss(const proto::JobLoss& job) {
  static constexpr char kExample[] =
      "sparse_categorical_crossentropy { from_logits: true }";
  if (KindOf(job).empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "loss is missing; expected for example loss { ", kExample, " }"));
  }
  absl::StatusOr<Loss> loss =
      MakeOfKind<Loss>(kLossKinds, job, kExample,
                       [](const LossKind& kind, ConfigVisitor& visitor) {
                         return kind.make(visitor);
                       });
  if (loss.ok()) return loss;
  return absl::InvalidArgumentError(
      absl::StrCat("loss: ", loss.status().message()));
}

DType LabelTypeOf(const Loss& loss) {
  for (const LossKind& kind : kLossKinds) {
    if (kind.name == loss.name()) return kind.label_type;
  }
  return DType::kFloat32;
}

absl::StatusOr<std::vector<Metric>> BuildJobMetrics(
    absl::string_view field,
    const google::protobuf::RepeatedPtrField<proto::JobMetric>& given_metrics) {
  std::vector<Metric> metrics;
  for (int i = 0; i < given_metrics.size(); ++i) {
    const proto::JobMetric& given = given_metrics.Get(i);
    absl::StatusOr<Metric> metric = MakeOfKind<Metric>(
        kMetricKinds, given, "sparse_categorical_accuracy {}",
        [](const MetricKind& kind, ConfigVisitor& visitor) {
          return kind.make(visitor);
        });
    if (!metric.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, "[", i, "]: ", metric.status().message()));
    }
    metrics.push_back(given.name().empty() ? *metric
                                           : metric->Named(given.name()));
  }
  return metrics;
}

namespace {

absl::Status ExpectAtLeast(absl::string_view field, int64_t least,
                           int64_t value) {
  if (value >= least && value <= std::numeric_limits<int>::max()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must be at least ", least, ", got ", value));
}

absl::Status CheckSplit(const proto::TrainingJob& job) {
  if (job.validation_split() == 0) return absl::OkStatus();
  RETURN_IF_ERROR(CheckValidationSplit(job.validation_split()));
  if (job.has_validation()) {
    return absl::InvalidArgumentError(
        "got both validation_split and validation; expected one of them");
  }
  if (job.input().auto_shard_policy() == proto::JobInput::FILE) {
    return absl::InvalidArgumentError(
        "validation_split counts the examples of all files, and with "
        "input.auto_shard_policy FILE a worker knows its own only; use AUTO or "
        "DATA");
  }
  return absl::OkStatus();
}

ClassWeights ClassWeightsOf(const proto::TrainingJob& job) {
  return {job.class_weight().begin(), job.class_weight().end()};
}

}  // namespace

absl::StatusOr<CompileOptions> BuildJobCompileOptions(
    const proto::TrainingJob& job, uint64_t seed, CompileOptions defaults) {
  CompileOptions options = std::move(defaults);
  options.seed = seed;
  if (job.has_optimizer() || !options.optimizer.has_rule()) {
    RETURN_IF_ERROR(CheckJobOptimizer(job.optimizer()));
    options.optimizer = job.optimizer();
  }
  if (job.has_auto_scale_loss()) {
    options.auto_scale_loss = job.auto_scale_loss();
  }
  for (const proto::LayerOptimizer& layer : job.layer_optimizers()) {
    options.layer_optimizers.push_back({layer.prefix(), layer.optimizer()});
    if (!layer.has_optimizer()) continue;  // Named by its prefix below.
    absl::Status status = CheckJobOptimizer(layer.optimizer());
    if (status.ok()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("layer_optimizers: prefix \"", layer.prefix(),
                     "\": ", status.message()));
  }
  RETURN_IF_ERROR(
      ModelOptimizers(options.optimizer, options.layer_optimizers).Check());
  if (job.has_loss() || (!options.loss && options.losses.empty())) {
    ASSIGN_OR_RETURN(options.loss, BuildJobLoss(job.loss()));
    options.losses.clear();
    options.loss_weights.clear();
  }
  if (!job.metrics().empty()) {
    ASSIGN_OR_RETURN(options.metrics,
                     BuildJobMetrics("metrics", job.metrics()));
    options.output_metrics.clear();
  }
  if (!job.weighted_metrics().empty()) {
    ASSIGN_OR_RETURN(
        options.weighted_metrics,
        BuildJobMetrics("weighted_metrics", job.weighted_metrics()));
    options.weighted_output_metrics.clear();
  }
  if (job.has_steps_per_execution()) {
    RETURN_IF_ERROR(
        ExpectAtLeast("steps_per_execution", 1, job.steps_per_execution()));
    options.steps_per_execution = static_cast<int>(job.steps_per_execution());
  }
  return options;
}

FitOptions BuildJobFitOptions(const proto::TrainingJob& job) {
  FitOptions fit;
  if (job.has_epochs()) fit.epochs = static_cast<int>(job.epochs());
  if (job.has_steps_per_epoch()) fit.steps_per_epoch = job.steps_per_epoch();
  if (job.has_validation_steps()) {
    fit.validation_steps = job.validation_steps();
  }
  fit.initial_epoch = static_cast<int>(job.initial_epoch());
  if (job.validation_freq_size() == 1) {
    fit.validation_freq = static_cast<int>(job.validation_freq(0));
  } else if (job.validation_freq_size() > 1) {
    fit.validation_freq = ValidationFrequency(std::vector<int>(
        job.validation_freq().begin(), job.validation_freq().end()));
  }
  fit.class_weight = ClassWeightsOf(job);
  if (job.has_fail_on_non_finite()) {
    fit.fail_on_non_finite = job.fail_on_non_finite();
  }
  return fit;
}

absl::Status CheckJobFit(const proto::TrainingJob& job) {
  if (job.has_epochs()) {
    RETURN_IF_ERROR(ExpectAtLeast("epochs", 1, job.epochs()));
  }
  if (job.has_steps_per_epoch() && job.steps_per_epoch() < 1) {
    return ExpectAtLeast("steps_per_epoch", 1, job.steps_per_epoch());
  }
  if (job.has_validation_steps() && job.validation_steps() < 1) {
    return ExpectAtLeast("validation_steps", 1, job.validation_steps());
  }
  RETURN_IF_ERROR(ExpectAtLeast("initial_epoch", 0, job.initial_epoch()));
  for (const int64_t epoch : job.validation_freq()) {
    RETURN_IF_ERROR(ExpectAtLeast("validation_freq", 1, epoch));
  }
  RETURN_IF_ERROR(CheckSplit(job));
  return CheckClassWeights(ClassWeightsOf(job));
}

}  // namespace muster
