#include "common/learn/train/job/job_model.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/variables/variable_name.h"
#include "common/core/base/status_macros.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/recurrent/rnn_cell.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/train/job/job_config_reader.h"
#include "common/learn/train/job/job_functional_model.h"
#include "common/learn/train/job/job_layer.h"
#include "proto/job_model.pb.h"

namespace muster {
namespace {

using proto::JobLayer;

absl::StatusOr<LayerPtr> BuildLayerWithOptions(const JobLayer& job);

absl::StatusOr<LayerPtr> BuildLayer(const JobLayer& layer) {
  if (layer.has_call()) {
    return absl::InvalidArgumentError(
        "call: only a layer of a functional model can be called again");
  }
  if (!layer.has_model()) return BuildJobLayer(layer, BuildLayerWithOptions);
  ASSIGN_OR_RETURN(LayerPtr model, BuildJobModel(layer.model()));
  if (!layer.name().empty()) model->set_name(layer.name());
  return model;
}

absl::Status AddActivityRegularizer(const JobLayer& job, Layer* layer) {
  if (dynamic_cast<RNNCell*>(layer) != nullptr) {
    return absl::InvalidArgumentError(
        "activity_regularizer: cells have none; give it to the layer around "
        "them");
  }
  const absl::StatusOr<Regularizer> regularizer = MakeOfKind<Regularizer>(
      kRegularizerKinds, job.activity_regularizer(), "l2 {}",
      [](const RegularizerKind& kind, ConfigVisitor& visitor) {
        return kind.make(visitor);
      });
  if (!regularizer.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("activity_regularizer: ", regularizer.status().message()));
  }
  layer->set_activity_regularizer(*regularizer);
  return absl::OkStatus();
}

// With what all layers can have.
absl::StatusOr<LayerPtr> BuildLayerWithOptions(const JobLayer& job) {
  RETURN_IF_ERROR(CheckVariableName(job.name()));
  ASSIGN_OR_RETURN(LayerPtr layer, BuildLayer(job));
  if (!job.dtype_policy().empty()) {
    ASSIGN_OR_RETURN(const DTypePolicy policy,
                     ParseDTypePolicy(job.dtype_policy()));
    layer->set_dtype_policy(policy);
  }
  if (job.has_trainable()) layer->set_trainable(job.trainable());
  if (job.has_activity_regularizer()) {
    RETURN_IF_ERROR(AddActivityRegularizer(job, layer.get()));
  }
  return layer;
}

absl::StatusOr<LayerPtr> BuildSequential(
    const proto::JobModel::Sequential& sequential) {
  std::vector<LayerPtr> layers;
  for (int i = 0; i < sequential.layers_size(); ++i) {
    absl::StatusOr<LayerPtr> layer =
        BuildLayerWithOptions(sequential.layers(i));
    if (!layer.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "model.sequential.layers[", i, "]: ", layer.status().message()));
    }
    layers.push_back(*std::move(layer));
  }
  return Sequential(layers);
}

}  // namespace

absl::StatusOr<LayerPtr> BuildJobModel(const proto::JobModel& model) {
  if (model.has_functional()) {
    return BuildJobFunctionalModel(model.functional(), BuildLayerWithOptions);
  }
  if (model.has_keras()) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.keras: ", model.keras(),
                     " is a whole model; it cannot be a layer of another"));
  }
  if (model.has_application()) return BuildJobApplication(model.application());
  if (model.sequential().layers().empty()) {
    return absl::InvalidArgumentError(
        "model has no layers; expected for example model { sequential { "
        "layers { dense { units: 10 } } } }");
  }
  return BuildSequential(model.sequential());
}

}  // namespace muster
