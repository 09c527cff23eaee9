#ifndef COMMON_LEARN_TRAIN_JOB_JOB_FUNCTIONAL_MODEL_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_FUNCTIONAL_MODEL_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/learn/nn/layer.h"

namespace muster {

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

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_FUNCTIONAL_MODEL_H_
