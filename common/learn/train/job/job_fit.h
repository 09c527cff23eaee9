#ifndef COMMON_LEARN_TRAIN_JOB_JOB_FIT_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_FIT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/learn/train/base/fit_options.h"

namespace muster {

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
