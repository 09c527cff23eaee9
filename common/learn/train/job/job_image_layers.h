#ifndef COMMON_LEARN_TRAIN_JOB_JOB_IMAGE_LAYERS_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_IMAGE_LAYERS_H_

#include "absl/status/statusor.h"
#include "common/learn/nn/layer.h"
#include "proto/training_job.pb.h"

namespace muster {

// The layers of a job file for images, and those that normalize or rectify:
// layer_normalization to random_zoom.
//   kInvalidArgument  the layer says too little or is of another kind; names
//                     the field
absl::StatusOr<LayerPtr> BuildJobImageLayer(const proto::JobLayer& layer);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_IMAGE_LAYERS_H_
