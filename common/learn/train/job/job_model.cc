#include "common/learn/train/job/job_model.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"
#include "common/learn/nn/activation_layer.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/dense.h"
#include "common/learn/nn/dropout.h"
#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/embedding.h"
#include "common/learn/nn/flatten.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/normalization.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/train/job/job_convolution_layers.h"
#include "common/learn/train/job/job_functional_model.h"
#include "common/learn/train/job/job_image_layers.h"
#include "common/learn/train/job/job_layer_parts.h"
#include "common/learn/train/job/job_sequence_layers.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using proto::JobLayer;

absl::StatusOr<LayerPtr> BuildDense(const std::string& name,
                                    const JobLayer::Dense& dense) {
  RETURN_IF_ERROR(ExpectPositive("dense.units", dense.units()));
  DenseOptions options{.name = name};
  ASSIGN_OR_RETURN(options.activation, ToActivation(dense.activation()));
  if (dense.has_use_bias()) options.use_bias = dense.use_bias();
  options.kernel_initializer =
      ToInitializer(dense.kernel_initializer(), options.kernel_initializer);
  options.bias_initializer =
      ToInitializer(dense.bias_initializer(), options.bias_initializer);
  ASSIGN_OR_RETURN(
      options.kernel_regularizer,
      ToRegularizer("dense.kernel_regularizer", dense.kernel_regularizer()));
  ASSIGN_OR_RETURN(
      options.bias_regularizer,
      ToRegularizer("dense.bias_regularizer", dense.bias_regularizer()));
  return Dense(dense.units(), options);
}

absl::StatusOr<LayerPtr> BuildEmbedding(const std::string& name,
                                        const JobLayer::Embedding& embedding) {
  RETURN_IF_ERROR(ExpectPositive("embedding.input_dim", embedding.input_dim()));
  RETURN_IF_ERROR(
      ExpectPositive("embedding.output_dim", embedding.output_dim()));
  EmbeddingOptions options{.mask_zero = embedding.mask_zero(), .name = name};
  options.embeddings_initializer = ToInitializer(
      embedding.embeddings_initializer(), options.embeddings_initializer);
  ASSIGN_OR_RETURN(options.embeddings_regularizer,
                   ToRegularizer("embedding.embeddings_regularizer",
                                 embedding.embeddings_regularizer()));
  return Embedding(embedding.input_dim(), embedding.output_dim(), options);
}

absl::StatusOr<LayerPtr> BuildLayer(const JobLayer& layer) {
  switch (layer.kind_case()) {
    case JobLayer::kDense:
      return BuildDense(layer.name(), layer.dense());
    case JobLayer::kFlatten:
      return Flatten({.name = layer.name()});
    case JobLayer::kDropout: {
      const double rate = layer.dropout().rate();
      if (!(rate >= 0 && rate < 1)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "dropout.rate must be at least 0 and less than 1, got ", rate));
      }
      return Dropout(rate,
                     {.seed = layer.dropout().seed(), .name = layer.name()});
    }
    case JobLayer::kActivation: {
      ASSIGN_OR_RETURN(const Activation activation,
                       ToActivation(layer.activation().function()));
      return Activate(activation, ActivationOptions{.name = layer.name()});
    }
    case JobLayer::kEmbedding:
      return BuildEmbedding(layer.name(), layer.embedding());
    case JobLayer::kNormalization:
      return LayerPtr(Normalization({.name = layer.name()}));
    case JobLayer::kLayerNormalization:
    case JobLayer::kLeakyRelu:
    case JobLayer::kPrelu:
    case JobLayer::kRescaling:
    case JobLayer::kResizing:
    case JobLayer::kRandomFlip:
    case JobLayer::kRandomRotation:
    case JobLayer::kRandomZoom:
      return BuildJobImageLayer(layer);
    case JobLayer::kSimpleRnn:
    case JobLayer::kLstm:
    case JobLayer::kGru:
    case JobLayer::kMultiHeadAttention:
      return BuildJobSequenceLayer(layer);
    case JobLayer::kModel: {
      ASSIGN_OR_RETURN(LayerPtr model, BuildJobModel(layer.model()));
      if (!layer.name().empty()) model->set_name(layer.name());
      return model;
    }
    case JobLayer::kCall:
      return absl::InvalidArgumentError(
          "call: only a layer of a functional model can be called again");
    case JobLayer::KIND_NOT_SET:
      break;
    default:
      return BuildJobConvolutionLayer(layer);
  }
  return absl::InvalidArgumentError(
      "says nothing; expected for example dense { units: 10 }");
}

// With what all layers can have.
absl::StatusOr<LayerPtr> BuildLayerWithOptions(const JobLayer& job) {
  ASSIGN_OR_RETURN(LayerPtr layer, BuildLayer(job));
  if (!job.dtype_policy().empty()) {
    ASSIGN_OR_RETURN(const DTypePolicy policy,
                     ParseDTypePolicy(job.dtype_policy()));
    layer->set_dtype_policy(policy);
  }
  if (job.has_trainable()) layer->set_trainable(job.trainable());
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
  if (model.has_application()) return BuildJobApplication(model.application());
  if (model.sequential().layers().empty()) {
    return absl::InvalidArgumentError(
        "model has no layers; expected for example model { sequential { "
        "layers { dense { units: 10 } } } }");
  }
  return BuildSequential(model.sequential());
}

}  // namespace muster
