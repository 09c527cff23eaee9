#include "common/learn/train/job/job_functional_model.h"

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
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/applications/applications.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/train/job/job_config_reader.h"
#include "proto/job_model.pb.h"

namespace muster {
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

}  // namespace muster
