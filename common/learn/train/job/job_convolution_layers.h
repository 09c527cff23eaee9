#ifndef COMMON_LEARN_TRAIN_JOB_JOB_CONVOLUTION_LAYERS_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_CONVOLUTION_LAYERS_H_

#include "absl/status/statusor.h"
#include "common/learn/nn/layer.h"
#include "proto/training_job.pb.h"

namespace muster {

// The layers of a job file that image models are made of: convolutions,
// pooling, batch normalization, merging and reshaping; conv1d to permute.
//   kInvalidArgument  the layer says too little or is of another kind; names
//                     the field
absl::StatusOr<LayerPtr> BuildJobConvolutionLayer(const proto::JobLayer& layer);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_CONVOLUTION_LAYERS_H_
