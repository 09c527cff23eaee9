#ifndef COMMON_LEARN_TRAIN_JOB_JOB_WEIGHTS_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_WEIGHTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/strategy.h"
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

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_WEIGHTS_H_
