#ifndef COMMON_LEARN_TRAIN_JOB_JOB_SEQUENCE_LAYERS_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_SEQUENCE_LAYERS_H_

#include "absl/status/statusor.h"
#include "common/learn/nn/layer.h"
#include "proto/training_job.pb.h"

namespace muster {

// The layers of a job file for sequences: recurrent ones and attention.
//   kInvalidArgument  the layer says too little, or what its kind does not
//                     know, or is of another kind; names the field
absl::StatusOr<LayerPtr> BuildJobSequenceLayer(const proto::JobLayer& layer);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_SEQUENCE_LAYERS_H_
