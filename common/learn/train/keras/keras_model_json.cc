#include "common/learn/train/keras/keras_model_json.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/attention/multi_head_attention.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/layers/layers.h"
#include "common/learn/nn/structure.h"
#include "common/learn/nn/weight.h"
#include "common/learn/train/keras/keras_layer_config.h"
#include "common/learn/train/keras/keras_names.h"
#include "common/learn/train/keras/keras_node.h"
#include "nlohmann/json.hpp"

namespace muster {
namespace {

// Keys in insertion order, as Keras writes them.
using Json = nlohmann::ordered_json;

constexpr char kSequential[] = "Sequential";

std::string DTypeOf(const Layer& layer) {
  const std::vector<Weight> weights = layer.weights();
  return std::string(DTypeName(
      weights.empty() ? DType::kFloat32 : weights.front().handle().type.dtype));
}

Json Policy(const std::string& dtype) {
  return {{"module", "keras"},
          {"class_name", "DTypePolicy"},
          {"config", {{"name", dtype}}},
          {"registered_name", nullptr}};
}

Json ShapeOf(const TensorType& type) {
  Json shape = Json::array();
  for (const int64_t extent : type.shape.dims()) {
    shape.push_back(extent == Shape::kUnknown ? Json(nullptr) : Json(extent));
  }
  return shape;
}

// As of the layer's last call; empty before any.
Json ShapeOf(const LayerOutput& output) {
  const std::vector<Shape>& shapes = output.call()->layer->output_shapes();
  const size_t index = output.index();
  return index < shapes.size() ? ShapeOf({DType::kInvalid, shapes[index]})
                               : Json::array();
}

Json InputLayerJson(const std::string& name, const TensorType& type) {
  return {{"module", "keras.layers"},
          {"class_name", "InputLayer"},
          {"config",
           {{"batch_shape", ShapeOf(type)},
            {"dtype", std::string(DTypeName(type.dtype))},
            {"name", name}}},
          {"registered_name", nullptr}};
}

// Writes a model and the layers in it, at any depth.
class ModelWriter {
 public:
  // `inputs` are those of a Sequential model that does not say them itself.
  static Json Write(const Layer& model, absl::Span<const TensorType> inputs) {
    ModelWriter writer;
    writer.Model(model, inputs);
    writer.counts_layers_ = false;
    return writer.Model(model, inputs);
  }

 private:
  Json Model(const Layer& model, absl::Span<const TensorType> inputs) {
    const auto* const functional = dynamic_cast<const FunctionalLayer*>(&model);
    return functional != nullptr ? FunctionalJson(*functional)
                                 : SequentialJson(model, inputs);
  }

  Json ToJson(Layer& layer);
  Json UnsharedJson(Layer& layer);
  Json SequentialJson(const Layer& model, absl::Span<const TensorType> inputs);
  Json FunctionalJson(const FunctionalLayer& model);

  // A layer that stands in several models or wrappers gets a number, by which
  // Keras reads all its places as one layer. A first pass counts the places.
  bool counts_layers_ = true;
  absl::flat_hash_map<const Layer*, int> place_counts_;
  absl::flat_hash_map<const Layer*, int64_t> ids_;
};

Json ModelWriter::SequentialJson(const Layer& model,
                                 absl::Span<const TensorType> inputs) {
  Json layers = Json::array();
  const std::vector<TensorType> own_inputs = model.input_types();
  if (!own_inputs.empty()) inputs = own_inputs;
  if (!inputs.empty()) {
    layers.push_back(InputLayerJson("input_layer", inputs.front()));
  }
  for (const auto& layer : model.layers()) layers.push_back(ToJson(*layer));
  return {{"module", "keras"},
          {"class_name", kSequential},
          {"config",
           {{"name", model.name().empty() ? "sequential" : model.name()},
            {"trainable", model.trainable()},
            {"dtype", Policy(DTypePolicyName(model.dtype_policy()))},
            {"layers", std::move(layers)}}},
          {"registered_name", nullptr}};
}

// The calls of a functional model, each layer's numbered from 0 in the order in
// which it was called, as Keras numbers the nodes of a file. Calls by others
// than the model do not count.
class NumberedCalls {
 public:
  explicit NumberedCalls(const FunctionalLayer& model) {
    for (const std::shared_ptr<const LayerCall>& call : model.calls()) {
      of_layers_[call->layer.get()].push_back(call.get());
    }
    for (auto& [layer, calls] : of_layers_) {
      std::sort(calls.begin(), calls.end(),
                [](const LayerCall* a, const LayerCall* b) {
                  return a->index < b->index;
                });
    }
  }

  // In their order.
  const std::vector<const LayerCall*>& Of(const Layer& layer) const {
    return of_layers_.at(&layer);
  }

  // {layer, call of the layer, output of the call}.
  Json HistoryOf(const LayerOutput& output) const {
    const Layer& layer = *output.call()->layer;
    const std::vector<const LayerCall*>& calls = Of(layer);
    const auto found =
        std::find(calls.begin(), calls.end(), output.call().get());
    return Json::array({layer.name(), found - calls.begin(), output.index()});
  }

  Json HistoriesOf(const LayerOutputs& outputs,
                   const Structure& structure) const {
    Json histories = Json::array();
    for (const LayerOutput& output : outputs) {
      histories.push_back(HistoryOf(output));
    }
    return NestedJson(structure, histories);
  }

 private:
  absl::flat_hash_map<const Layer*, std::vector<const LayerCall*>> of_layers_;
};

Json TensorOf(const LayerOutput& output, const NumberedCalls& calls) {
  return {{"class_name", "__keras_tensor__"},
          {"config",
           {{"shape", ShapeOf(output)},
            {"dtype", DTypeOf(*output.call()->layer)},
            {"keras_history", calls.HistoryOf(output)}}}};
}

// Merging layers take a list of tensors. Others take them one by one.
bool TakesList(const Layer& layer) {
  return dynamic_cast<const MultiHeadAttentionLayer*>(&layer) == nullptr;
}

// Whether inputs after the first one are states to begin with.
bool TakesInitialStates(const Layer& layer) {
  const LayerKind* const kind = FindKerasLayerKind(layer.kind());
  return kind != nullptr && kind->keras_calls.takes_initial_states;
}

Json InboundNode(const LayerCall& call, const NumberedCalls& calls) {
  Json tensors = Json::array();
  for (const LayerOutput& input : call.inputs) {
    tensors.push_back(TensorOf(input, calls));
  }
  Json keywords = KerasCallArguments(*call.layer);
  if (keywords.erase("takes_attention_mask") > 0) {
    keywords["attention_mask"] = tensors.back();
    tensors.erase(tensors.size() - 1);
  }
  if (call.training.has_value()) keywords["training"] = *call.training;
  if (call.is_reversed) keywords["reverse"] = true;
  Json args = Json::array();
  if (tensors.size() > 1 && TakesInitialStates(*call.layer)) {
    args.push_back(tensors.front());
    tensors.erase(tensors.begin());
    keywords["initial_state"] = std::move(tensors);
  } else if (const auto* const model =
                 dynamic_cast<const FunctionalLayer*>(call.layer.get())) {
    args.push_back(NestedJson(model->input_structure(), tensors));
  } else if (TakesList(*call.layer)) {
    args.push_back(tensors.size() == 1 ? tensors.front() : tensors);
  } else {
    args = std::move(tensors);
  }
  return {{"args", std::move(args)}, {"kwargs", std::move(keywords)}};
}

Json ModelWriter::FunctionalJson(const FunctionalLayer& model) {
  // A layer is listed where the model first needs it, with all its calls.
  const NumberedCalls calls(model);
  absl::flat_hash_set<const Layer*> listed;
  Json layers = Json::array();
  for (const std::shared_ptr<const LayerCall>& first : model.calls()) {
    Layer& layer = *first->layer;
    if (!listed.insert(&layer).second) continue;
    Json entry = ToJson(layer);
    entry["name"] = layer.name();
    entry["inbound_nodes"] = Json::array();
    for (const LayerCall* const call : calls.Of(layer)) {
      if (call->inputs.empty()) continue;
      entry["inbound_nodes"].push_back(InboundNode(*call, calls));
    }
    layers.push_back(std::move(entry));
  }
  return {{"module", "keras.src.models.functional"},
          {"class_name", "Functional"},
          {"config",
           {{"name", model.name().empty() ? "functional" : model.name()},
            {"trainable", model.trainable()},
            {"layers", std::move(layers)},
            {"input_layers",
             calls.HistoriesOf(model.inputs(), model.input_structure())},
            {"output_layers",
             calls.HistoriesOf(model.outputs(), model.output_structure())}}},
          {"registered_name", "Functional"}};
}

Json ModelWriter::ToJson(Layer& layer) {
  const bool can_be_shared = layer.kind() != "InputLayer";
  if (counts_layers_) {
    const bool is_first = place_counts_[&layer]++ == 0;
    return is_first ? UnsharedJson(layer) : Json::object();
  }
  Json json = UnsharedJson(layer);
  if (can_be_shared && place_counts_[&layer] > 1) {
    const auto next_id = static_cast<int64_t>(ids_.size()) + 1;
    json["shared_object_id"] = ids_.emplace(&layer, next_id).first->second;
  }
  return json;
}

Json ModelWriter::UnsharedJson(Layer& layer) {
  const auto* const functional = dynamic_cast<FunctionalLayer*>(&layer);
  if (functional != nullptr) return FunctionalJson(*functional);
  if (layer.kind() == kSequential) return SequentialJson(layer, {});
  const std::vector<TensorType> inputs = layer.input_types();
  if (layer.kind() == "InputLayer" && !inputs.empty()) {
    return InputLayerJson(layer.name(), inputs.front());
  }
  return KerasLayerConfig(layer,
                          [this](Layer& inner) { return ToJson(inner); });
}

}  // namespace

std::optional<Json> KerasModelConfig(const Layer& model,
                                     absl::Span<const TensorType> inputs) {
  const auto* const functional = dynamic_cast<const FunctionalLayer*>(&model);
  const bool is_functional = functional != nullptr && functional->status().ok();
  if (!is_functional && model.kind() != kSequential) return std::nullopt;
  return ModelWriter::Write(model, inputs);
}

std::optional<std::string> KerasModelJson(const Layer& model) {
  const std::optional<Json> config = KerasModelConfig(model, {});
  if (!config.has_value()) return std::nullopt;
  return config->dump();
}

}  // namespace muster
