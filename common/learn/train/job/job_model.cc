#include "common/learn/train/job/job_model.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/compute/variables/variable_name.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/applications/applications.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/layers.h"
#include "common/learn/nn/recurrent/rnn_cell.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/train/job/job_config_reader.h"
#include "common/learn/train/job/job_schema.h"
#include "google/protobuf/message.h"
#include "proto/job_model.pb.h"

namespace muster {

absl::StatusOr<LayerPtr> BuildJobLayer(const proto::JobLayer& job,
                                       const JobLayerBuilder& build_inner) {
  const auto build = [&](const google::protobuf::Message& message)
      -> absl::StatusOr<LayerPtr> {
    proto::JobLayer inner;
    CopyFromKinds(message, &inner);
    if (!inner.inputs().empty()) {
      return absl::InvalidArgumentError(
          "inputs: a layer inside another one has the inputs of that one");
    }
    return build_inner ? build_inner(inner) : BuildJobLayer(inner);
  };
  ASSIGN_OR_RETURN(LayerPtr layer,
                   MakeOfKind<LayerPtr>(
                       kLayerKinds, job, "dense { units: 10 }",
                       [](const LayerKind& kind, ConfigVisitor& visitor) {
                         LayerPtr made = kind.make();
                         made->VisitConfig(visitor);
                         return made;
                       },
                       build));
  layer->set_name(job.name());
  return layer;
}

namespace {

using proto::JobLayer;
using proto::JobModel;

// The model as it grows: what can be named so far.
class Drawing {
 public:
  absl::Status AddInput(const JobModel::Functional::Input& job) {
    if (job.name().empty()) {
      return absl::InvalidArgumentError("an input needs a name");
    }
    ASSIGN_OR_RETURN(const Shape shape,
                     Shape::Create({job.shape().data(),
                                    static_cast<size_t>(job.shape().size())},
                                   /*allow_unknown=*/true));
    InputLayerOptions options{.name = job.name()};
    if (job.has_batch_size()) options.batch_size = job.batch_size();
    if (!job.dtype().empty()) {
      ASSIGN_OR_RETURN(options.dtype, ParseDType(job.dtype()));
    }
    inputs_.push_back(Input(shape, options));
    return Name(job.name(), {inputs_.back()});
  }

  absl::Status AddLayer(const JobLayer& job, BuildLayerFunction build_layer) {
    LayerPtr layer;
    if (job.has_call()) {
      const auto found = layers_.find(job.call().layer());
      if (found == layers_.end()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "call.layer: no layer \"", job.call().layer(), "\" before it"));
      }
      layer = found->second;
    } else {
      ASSIGN_OR_RETURN(layer, build_layer(job));
      if (!job.name().empty()) layers_.emplace(job.name(), layer);
    }
    LayerOutputs arguments = last_.empty() ? inputs_ : LayerOutputs(last_[0]);
    if (!job.inputs().empty()) {
      arguments.clear();
      for (const std::string& name : job.inputs()) {
        ASSIGN_OR_RETURN(LayerOutput argument, Find(name));
        arguments.push_back(std::move(argument));
      }
    }
    last_ = job.call().reverse() ? layer.Reverse(std::move(arguments))
                                 : layer.CallAll(std::move(arguments));
    return job.name().empty() ? absl::OkStatus() : Name(job.name(), last_);
  }

  // "name", or "name:1".
  absl::StatusOr<LayerOutput> Find(const std::string& reference) const {
    const std::vector<std::string> parts = absl::StrSplit(reference, ':');
    int index = 0;
    const auto found = values_.find(parts[0]);
    if (found == values_.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "no layer or input before it is named \"", parts[0], "\""));
    }
    const bool is_number =
        parts.size() == 1 ||
        (parts.size() == 2 && absl::SimpleAtoi(parts[1], &index));
    if (!is_number || index < 0 ||
        index >= static_cast<int>(found->second.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", reference, "\": ", parts[0], " has ",
                       found->second.size(), " outputs, counted from 0"));
    }
    return found->second[index];
  }

  const LayerOutputs& inputs() const { return inputs_; }
  const LayerOutputs& last() const { return last_; }

 private:
  absl::Status Name(const std::string& name, LayerOutputs outputs) {
    if (values_.emplace(name, std::move(outputs)).second) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("there is another layer or input named \"", name, "\""));
  }

  LayerOutputs inputs_;
  LayerOutputs last_;  // Of the layer that was added last.
  absl::flat_hash_map<std::string, LayerOutputs> values_;
  absl::flat_hash_map<std::string, LayerPtr> layers_;
};

absl::Status At(absl::string_view place, int index,
                const absl::Status& status) {
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat(
      "model.functional.", place, "[", index, "]: ", status.message()));
}

}  // namespace

absl::StatusOr<LayerPtr> BuildJobFunctionalModel(
    const JobModel::Functional& model, BuildLayerFunction build_layer) {
  Drawing drawing;
  for (int i = 0; i < model.inputs_size(); ++i) {
    RETURN_IF_ERROR(At("inputs", i, drawing.AddInput(model.inputs(i))));
  }
  if (model.inputs().empty() || model.layers().empty()) {
    return absl::InvalidArgumentError(
        "model.functional needs inputs and layers");
  }
  for (int i = 0; i < model.layers_size(); ++i) {
    RETURN_IF_ERROR(
        At("layers", i, drawing.AddLayer(model.layers(i), build_layer)));
  }
  LayerOutputs outputs;
  for (int i = 0; i < model.outputs_size(); ++i) {
    const absl::StatusOr<LayerOutput> output = drawing.Find(model.outputs(i));
    RETURN_IF_ERROR(At("outputs", i, output.status()));
    outputs.push_back(*output);
  }
  if (outputs.empty()) outputs = drawing.last();
  const auto functional =
      Functional(drawing.inputs(), outputs, {.name = model.name()});
  RETURN_IF_ERROR(functional->status());
  return LayerPtr(functional);
}

absl::StatusOr<LayerPtr> BuildJobApplication(
    const proto::JobApplication& application) {
  static constexpr char kExample[] = "mobilenet_v2 {}";
  if (KindOf(application).empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model.application says nothing; expected for example application { ",
        kExample, " }"));
  }
  ASSIGN_OR_RETURN(const LayerPtrTo<FunctionalLayer> model,
                   MakeOfKind<LayerPtrTo<FunctionalLayer>>(
                       kApplicationKinds, application, kExample,
                       [](const ApplicationKind& kind, ConfigVisitor& visitor) {
                         return kind.make(visitor);
                       }));
  RETURN_IF_ERROR(model->status());
  return LayerPtr(model);
}

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
