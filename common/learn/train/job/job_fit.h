#ifndef COMMON_LEARN_TRAIN_JOB_JOB_FIT_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_FIT_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/metric.h"
#include "common/learn/train/base/fit_options.h"
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

namespace proto {
class TrainingJob;
}  // namespace proto

// Returns what a job says to Compile(). Optimizer, loss, metrics, weighted
// metrics and steps_per_execution that the job leaves out are those of
// `defaults`.
//   kInvalidArgument  something is missing or out of range; names the field
absl::StatusOr<CompileOptions> BuildJobCompileOptions(
    const proto::TrainingJob& job, uint64_t seed, CompileOptions defaults = {});

// Returns its options for Fit(), without the validation data. The job is valid.
FitOptions BuildJobFitOptions(const proto::TrainingJob& job);

//   kInvalidArgument  a number that Fit() is given is out of range, or fields
//                     exclude each other; names them
absl::Status CheckJobFit(const proto::TrainingJob& job);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_FIT_H_
