#ifndef COMMON_LEARN_TRAIN_JOB_JOB_MODEL_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_MODEL_H_

#include "absl/status/statusor.h"
#include "common/learn/nn/layer.h"

namespace muster {

namespace proto {
class JobModel;
}  // namespace proto

// The layers that a job file describes.
//   kInvalidArgument  no model, no layers, a layer that says too little, or a
//                     file of Keras, which ReadJobKerasFile() reads; names the
//                     field
absl::StatusOr<LayerPtr> BuildJobModel(const proto::JobModel& model);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_MODEL_H_
