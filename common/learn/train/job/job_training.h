#ifndef COMMON_LEARN_TRAIN_JOB_JOB_TRAINING_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_TRAINING_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/metric.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "proto/optimizer.pb.h"
#include "proto/training_job.pb.h"

namespace muster {

// Reads how a job file's model is trained. Absent fields have
// Keras' defaults.
//   kInvalidArgument  something is missing or out of range; names the field

absl::Status CheckJobOptimizer(const proto::Optimizer& optimizer);

absl::StatusOr<Loss> BuildJobLoss(const proto::JobLoss& loss);

// The type that labels have in a file that does not say it (csv): that which
// the loss compares.
DType LabelTypeOf(const Loss& loss);

// `field` is what the job calls the list.
absl::StatusOr<std::vector<Metric>> BuildJobMetrics(
    absl::string_view field,
    const google::protobuf::RepeatedPtrField<proto::JobMetric>& metrics);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_TRAINING_H_
