#include "common/learn/train/job/job_training.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
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

using proto::JobLoss;
using proto::JobMetric;

// Sets option `name` if the job has field `name`; otherwise it keeps the
// default that Keras gives it.
#define SET_IF_PRESENT(options, job, name) \
  if ((job).has_##name()) (options).name = (job).name()

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
