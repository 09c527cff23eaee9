#include "common/learn/train/job/job_training.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/core/base/status_macros.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metric.h"
#include "common/learn/nn/metrics.h"
#include "proto/optimizer.pb.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using proto::JobLearningRate;
using proto::JobLoss;
using proto::JobMetric;
using proto::JobOptimizer;

// Sets option `name` if the job has field `name`; otherwise it keeps the
// default that Keras gives it.
#define SET_IF_PRESENT(options, job, name) \
  if ((job).has_##name()) (options).name = (job).name()

proto::LearningRate BuildSchedule(const JobLearningRate& job) {
  switch (job.kind_case()) {
    case JobLearningRate::kExponentialDecay: {
      const auto& decay = job.exponential_decay();
      return ExponentialDecay(
          {.initial_learning_rate = decay.initial_learning_rate(),
           .decay_steps = decay.decay_steps(),
           .decay_rate = decay.decay_rate(),
           .staircase = decay.staircase()});
    }
    case JobLearningRate::kPiecewiseConstantDecay: {
      const auto& decay = job.piecewise_constant_decay();
      return PiecewiseConstantDecay(
          {.boundaries = {decay.boundaries().begin(), decay.boundaries().end()},
           .values = {decay.values().begin(), decay.values().end()}});
    }
    case JobLearningRate::kPolynomialDecay: {
      const auto& decay = job.polynomial_decay();
      PolynomialDecayOptions options{
          .initial_learning_rate = decay.initial_learning_rate(),
          .decay_steps = decay.decay_steps(),
          .cycle = decay.cycle()};
      SET_IF_PRESENT(options, decay, end_learning_rate);
      SET_IF_PRESENT(options, decay, power);
      return PolynomialDecay(options);
    }
    case JobLearningRate::kCosineDecay: {
      const auto& decay = job.cosine_decay();
      CosineDecayOptions options{
          .initial_learning_rate = decay.initial_learning_rate(),
          .decay_steps = decay.decay_steps(),
          .alpha = decay.alpha(),
          .warmup_steps = decay.warmup_steps()};
      SET_IF_PRESENT(options, decay, warmup_target);
      return CosineDecay(options);
    }
    case JobLearningRate::kInverseTimeDecay: {
      const auto& decay = job.inverse_time_decay();
      return InverseTimeDecay(
          {.initial_learning_rate = decay.initial_learning_rate(),
           .decay_steps = decay.decay_steps(),
           .decay_rate = decay.decay_rate(),
           .staircase = decay.staircase()});
    }
    case JobLearningRate::KIND_NOT_SET:
      break;
  }
  return {};
}

proto::Optimizer BuildSgd(const JobOptimizer::Sgd& job) {
  SgdOptions options;
  SET_IF_PRESENT(options, job, learning_rate);
  SET_IF_PRESENT(options, job, momentum);
  SET_IF_PRESENT(options, job, nesterov);
  SET_IF_PRESENT(options, job, weight_decay);
  return Sgd(options);
}

// Adam's options or AdamW's.
template <typename Options>
Options AdamOptionsFrom(const JobOptimizer::Adam& job) {
  Options options;
  SET_IF_PRESENT(options, job, learning_rate);
  SET_IF_PRESENT(options, job, beta_1);
  SET_IF_PRESENT(options, job, beta_2);
  SET_IF_PRESENT(options, job, epsilon);
  SET_IF_PRESENT(options, job, amsgrad);
  SET_IF_PRESENT(options, job, weight_decay);
  return options;
}

proto::Optimizer BuildAdagrad(const JobOptimizer::Adagrad& job) {
  AdagradOptions options;
  SET_IF_PRESENT(options, job, learning_rate);
  SET_IF_PRESENT(options, job, initial_accumulator_value);
  SET_IF_PRESENT(options, job, epsilon);
  SET_IF_PRESENT(options, job, weight_decay);
  return Adagrad(options);
}

proto::Optimizer BuildRmsProp(const JobOptimizer::RmsProp& job) {
  RmsPropOptions options;
  SET_IF_PRESENT(options, job, learning_rate);
  SET_IF_PRESENT(options, job, rho);
  SET_IF_PRESENT(options, job, momentum);
  SET_IF_PRESENT(options, job, epsilon);
  SET_IF_PRESENT(options, job, centered);
  SET_IF_PRESENT(options, job, weight_decay);
  return RmsProp(options);
}

proto::Optimizer BuildFtrl(const JobOptimizer::Ftrl& job) {
  FtrlOptions options;
  SET_IF_PRESENT(options, job, learning_rate);
  SET_IF_PRESENT(options, job, learning_rate_power);
  SET_IF_PRESENT(options, job, initial_accumulator_value);
  SET_IF_PRESENT(options, job, l1_regularization_strength);
  SET_IF_PRESENT(options, job, l2_regularization_strength);
  SET_IF_PRESENT(options, job, l2_shrinkage_regularization_strength);
  SET_IF_PRESENT(options, job, beta);
  SET_IF_PRESENT(options, job, weight_decay);
  return Ftrl(options);
}

Reduction ToReduction(JobLoss::Reduction reduction) {
  return reduction == JobLoss::SUM ? Reduction::kSum
                                   : Reduction::kSumOverBatchSize;
}

template <typename Crossentropy>
CrossentropyOptions CrossentropyOptionsFrom(const Crossentropy& job) {
  return {.from_logits = job.from_logits(),
          .label_smoothing = job.label_smoothing(),
          .reduction = ToReduction(job.reduction())};
}

Loss BuildSparseCrossentropy(
    const JobLoss::SparseCategoricalCrossentropy& job) {
  SparseCrossentropyOptions options{.from_logits = job.from_logits(),
                                    .reduction = ToReduction(job.reduction())};
  SET_IF_PRESENT(options, job, ignore_class);
  return SparseCategoricalCrossentropy(options);
}

template <typename TopK>
TopKOptions TopKOptionsFrom(const TopK& job) {
  TopKOptions options;
  SET_IF_PRESENT(options, job, k);
  return options;
}

Metric BuildAuc(const JobMetric::Auc& job) {
  AucOptions options{.from_logits = job.from_logits()};
  SET_IF_PRESENT(options, job, num_thresholds);
  if (job.curve() == JobMetric::Auc::PR) options.curve = AucCurve::kPr;
  if (job.summation_method() == JobMetric::Auc::MINORING) {
    options.summation_method = AucSummation::kMinoring;
  } else if (job.summation_method() == JobMetric::Auc::MAJORING) {
    options.summation_method = AucSummation::kMajoring;
  }
  return Auc(options);
}

absl::StatusOr<Metric> BuildMetric(const JobMetric& job) {
  switch (job.kind_case()) {
    case JobMetric::kBinaryAccuracy: {
      BinaryAccuracyOptions options;
      SET_IF_PRESENT(options, job.binary_accuracy(), threshold);
      return BinaryAccuracy(options);
    }
    case JobMetric::kCategoricalAccuracy:
      return CategoricalAccuracy();
    case JobMetric::kSparseCategoricalAccuracy:
      return SparseCategoricalAccuracy();
    case JobMetric::kTopKCategoricalAccuracy:
      return TopKCategoricalAccuracy(
          TopKOptionsFrom(job.top_k_categorical_accuracy()));
    case JobMetric::kSparseTopKCategoricalAccuracy:
      return SparseTopKCategoricalAccuracy(
          TopKOptionsFrom(job.sparse_top_k_categorical_accuracy()));
    case JobMetric::kAuc:
      return BuildAuc(job.auc());
    case JobMetric::kMeanSquaredError:
      return Metric(MeanSquaredError());
    case JobMetric::kMeanAbsoluteError:
      return Metric(MeanAbsoluteError());
    case JobMetric::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "says nothing; expected for example sparse_categorical_accuracy {}");
}

#undef SET_IF_PRESENT

}  // namespace

absl::StatusOr<proto::Optimizer> BuildJobOptimizer(const JobOptimizer& job) {
  proto::Optimizer optimizer;
  switch (job.rule_case()) {
    case JobOptimizer::kSgd:
      optimizer = BuildSgd(job.sgd());
      break;
    case JobOptimizer::kAdam:
      optimizer = Adam(AdamOptionsFrom<AdamOptions>(job.adam()));
      break;
    case JobOptimizer::kAdamw:
      optimizer = AdamW(AdamOptionsFrom<AdamWOptions>(job.adamw()));
      break;
    case JobOptimizer::kAdagrad:
      optimizer = BuildAdagrad(job.adagrad());
      break;
    case JobOptimizer::kRmsprop:
      optimizer = BuildRmsProp(job.rmsprop());
      break;
    case JobOptimizer::kFtrl:
      optimizer = BuildFtrl(job.ftrl());
      break;
    case JobOptimizer::RULE_NOT_SET:
      return absl::InvalidArgumentError(
          "optimizer is missing; expected for example optimizer { adam {} }");
  }
  if (job.has_learning_rate_schedule()) {
    *optimizer.mutable_learning_rate() =
        BuildSchedule(job.learning_rate_schedule());
  }
  optimizer.set_clipnorm(job.clipnorm());
  optimizer.set_clipvalue(job.clipvalue());
  optimizer.set_global_clipnorm(job.global_clipnorm());
  const absl::Status status = UpdateRule::Create(optimizer).status();
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("optimizer: ", status.message()));
  }
  return optimizer;
}

absl::StatusOr<Loss> BuildJobLoss(const JobLoss& job) {
  switch (job.kind_case()) {
    case JobLoss::kMeanSquaredError:
      return MeanSquaredError(
          {.reduction = ToReduction(job.mean_squared_error().reduction())});
    case JobLoss::kMeanAbsoluteError:
      return MeanAbsoluteError(
          {.reduction = ToReduction(job.mean_absolute_error().reduction())});
    case JobLoss::kBinaryCrossentropy:
      return BinaryCrossentropy(
          CrossentropyOptionsFrom(job.binary_crossentropy()));
    case JobLoss::kCategoricalCrossentropy:
      return CategoricalCrossentropy(
          CrossentropyOptionsFrom(job.categorical_crossentropy()));
    case JobLoss::kSparseCategoricalCrossentropy:
      return BuildSparseCrossentropy(job.sparse_categorical_crossentropy());
    case JobLoss::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "loss is missing; expected for example loss { "
      "sparse_categorical_crossentropy { from_logits: true } }");
}

absl::StatusOr<std::vector<Metric>> BuildJobMetrics(
    absl::string_view field,
    const google::protobuf::RepeatedPtrField<JobMetric>& given_metrics) {
  std::vector<Metric> metrics;
  for (int i = 0; i < given_metrics.size(); ++i) {
    const JobMetric& given = given_metrics.Get(i);
    absl::StatusOr<Metric> metric = BuildMetric(given);
    if (!metric.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, "[", i, "]: ", metric.status().message()));
    }
    metrics.push_back(given.name().empty() ? *metric
                                           : metric->Named(given.name()));
  }
  return metrics;
}

}  // namespace muster
