#include "common/learn/train/job/job_training.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metric.h"
#include "common/learn/nn/metrics.h"
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

}  // namespace muster
