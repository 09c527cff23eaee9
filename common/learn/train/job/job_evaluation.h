#ifndef COMMON_LEARN_TRAIN_JOB_JOB_EVALUATION_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_EVALUATION_H_

#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/job/resolved_job.h"
#include "common/learn/train/model.h"

namespace muster {

// Compiles and builds a job's model for the data, which errors call `field`,
// and loads the weights: the prefix of a checkpoint, or a folder of them. The
// strategy outlives the model.
//   kInvalidArgument  the data does not fit the model, or the weights do not
//   others            as ResolvedJob::OpenData(), Adapt() and
//                     Model::LoadWeights()
absl::StatusOr<Model> LoadTrainedModel(ResolvedJob& resolved,
                                       absl::string_view field,
                                       const Dataset& data,
                                       const std::string& weights,
                                       Strategy& strategy);

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
