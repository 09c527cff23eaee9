#ifndef COMMON_LEARN_TRAIN_JOB_JOB_LAYER_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_LAYER_H_

#include <functional>

#include "absl/status/statusor.h"
#include "common/learn/nn/layer.h"

namespace muster {

namespace proto {
class JobLayer;
}  // namespace proto

using JobLayerBuilder =
    std::function<absl::StatusOr<LayerPtr>(const proto::JobLayer& job)>;

// The layer of a job file, of any kind in common/learn/nn/layers/layers.h; not
// a model as a layer, nor another call of one.
//   kInvalidArgument  no kind, one of those two, a dtype policy that there is
//                     not, or a hyperparameter that cannot be used or that the
//                     kind does not have; names the field
// Layers inside the layer are made by `build_inner`, and by this function
// itself if it is null.
absl::StatusOr<LayerPtr> BuildJobLayer(
    const proto::JobLayer& job, const JobLayerBuilder& build_inner = nullptr);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_LAYER_H_
