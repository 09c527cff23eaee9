#ifndef COMMON_LEARN_TRAIN_JOB_JOB_EVALUATOR_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_EVALUATOR_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/evaluator/checkpoint_evaluator.h"

namespace muster {

namespace proto {
class TrainingJob;
}  // namespace proto

// Where the job says that its checkpoints are: what the evaluator is told, or
// else the first model_checkpoint; empty where neither says it.
std::string JobCheckpointDir(const proto::TrainingJob& job);

// Reads the evaluator of a job file. `compiled` says which metrics the model
// has.
//   kInvalidArgument  something is missing or out of range; names the field
absl::StatusOr<CheckpointEvaluator::Options> BuildJobEvaluator(
    const proto::TrainingJob& job, const std::string& run_dir,
    const CompileOptions& compiled);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_EVALUATOR_H_
