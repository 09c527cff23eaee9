#ifndef COMMON_LEARN_TRAIN_JOB_JOB_EVALUATION_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_EVALUATION_H_

#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/job/resolved_job.h"

namespace muster {

struct EvaluateWeightsOptions {
  // The prefix of a checkpoint, or a folder of them, as Model::LoadWeights().
  std::string weights;
  int thread_count = 0;  // 0 for all cores.
};

// Evaluates a trained model, in this process, on the job's test data, or else
// on its validation data. Writes one line to `output`: the part of the data,
// and the loss and each metric, which are also returned.
//   kInvalidArgument  the job has no such data, or they do not fit the model or
//                     the weights
//   kNotFound         no weights, or no data
//   others            as ResolvedJob::OpenData(), Model::LoadWeights() and
//                     Model::Evaluate()
absl::StatusOr<Logs> EvaluateWeights(ResolvedJob resolved,
                                     const EvaluateWeightsOptions& options,
                                     std::ostream& output);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_EVALUATION_H_
