#ifndef COMMON_LEARN_TRAIN_JOB_JOB_MODEL_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_MODEL_H_

#include <functional>

#include "absl/functional/function_ref.h"
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

namespace proto {
class JobApplication;
class JobLayer;
class JobModel_Functional;
}  // namespace proto

// How a layer of a job file is made.
using BuildLayerFunction =
    absl::FunctionRef<absl::StatusOr<LayerPtr>(const proto::JobLayer& layer)>;

// Both: kInvalidArgument, naming the field and the layer.
absl::StatusOr<LayerPtr> BuildJobFunctionalModel(
    const proto::JobModel_Functional& model, BuildLayerFunction build_layer);
absl::StatusOr<LayerPtr> BuildJobApplication(
    const proto::JobApplication& application);

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
