#include "common/learn/train/keras/keras_model_reader.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/nesting_depth.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/layers.h"
#include "common/learn/nn/programs/program_layer.h"
#include "common/learn/nn/recurrent/rnn_cell.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/nn/structure.h"
#include "common/learn/train/keras/keras_argument_reader.h"
#include "common/learn/train/keras/keras_differences.h"
#include "common/learn/train/keras/keras_implicit_masks.h"
#include "common/learn/train/keras/keras_layer_config.h"
#include "common/learn/train/keras/keras_names.h"
#include "common/learn/train/keras/keras_node.h"
#include "common/learn/train/keras/keras_object.h"
#include "common/learn/train/keras/keras_operations.h"

namespace muster {
namespace {

// Longer ones are not in files that are not hostile.
constexpr int64_t kNGramMax = 64;

constexpr char kInputLayer[] = "InputLayer";

bool IsFunctional(absl::string_view class_name) {
  return class_name == "Functional" || class_name == "Model";
}

// True if a layer of the model, at any depth, carries states from batch to
// batch.
bool HasStatefulLayer(const KerasJson& model) {
  std::vector<const KerasJson*> pending = {&model};
  while (!pending.empty()) {
    const KerasJson& json = *pending.back();
    pending.pop_back();
    if (FindMember(json, "stateful") == true) return true;
    for (const KerasJson& inner : json) {
      if (inner.is_structured()) pending.push_back(&inner);
    }
  }
  return false;
}

// True if `training` is what Keras records of a call that does not say it.
bool IsDefaultOfCall(absl::string_view class_name, bool training) {
  const LayerKind* const kind = FindKerasLayerKind(class_name);
  return kind != nullptr &&
         kind->keras_calls.training ==
             (training ? TrainingDefault::kOn : TrainingDefault::kOff);
}

// Drops the `training` of a call where Keras does: Keras 3 replaces it when the
// model is called, Keras 2 only what the program has not given. `json` is the
// entry of inbound_nodes.
void DropTraining(absl::string_view place, absl::string_view class_name,
                  const KerasJson& json, KerasNode* node) {
  if (!node->training.has_value()) return;
  const bool is_default = IsDefaultOfCall(class_name, *node->training);
  const bool is_keras_2 = json.is_array();
  if (is_keras_2 && !is_default) return;
  if (!is_default) {
    LOG(WARNING)
        << place << ": training=" << (*node->training ? "True" : "False")
        << " of its call is replaced by that of fit() or predict(), as "
           "Keras 3 does; set trainable=False to freeze the layer";
  }
  node->training.reset();
}

absl::Status CheckName(absl::string_view place, absl::string_view name) {
  if (name.find('/') == absl::string_view::npos) return absl::OkStatus();
  return BadKerasStructure(place, "its name must not have a \"/\"");
}

constexpr char kSharedObjectId[] = "shared_object_id";

// True if an object at any depth has a number by which it is known as one that
// occurs in several places.
bool HasSharedObject(const KerasJson& json) {
  if (json.contains(kSharedObjectId)) return true;
  return std::any_of(json.begin(), json.end(), [](const KerasJson& inner) {
    return inner.is_structured() && HasSharedObject(inner);
  });
}

KerasJson WithoutIds(KerasJson json) {
  if (json.is_object()) json.erase(kSharedObjectId);
  for (KerasJson& inner : json) {
    if (inner.is_structured()) inner = WithoutIds(std::move(inner));
  }
  return json;
}

// Layers that occur in several places of a file. Keras numbers them, but mostly
// not at the first place: there, a layer has the same config without a number.
class SharedLayers {
 public:
  // `model` is the whole file.
  explicit SharedLayers(const KerasJson& model)
      : is_used_(HasSharedObject(model)) {}

  // Returns the layer that was read before at another place; null if there is
  // none.
  LayerPtr Find(const KerasJson& json) {
    const KerasJson& id = FindMember(json, kSharedObjectId);
    if (!id.is_number_integer()) return nullptr;
    LayerPtr& layer = numbered_[id.get<int64_t>()];
    if (layer == nullptr) {
      const auto found = unnumbered_.find(KeyOf(json));
      if (found != unnumbered_.end()) layer = found->second;
    }
    return layer;
  }

  void Add(const KerasJson& json, const LayerPtr& layer) {
    if (!is_used_) return;
    const KerasJson& id = FindMember(json, kSharedObjectId);
    if (id.is_number_integer()) {
      numbered_[id.get<int64_t>()] = layer;
    } else {
      unnumbered_.emplace(KeyOf(json), layer);
    }
  }

 private:
  static std::string KeyOf(const KerasJson& json) {
    const KerasJson key = {TextMember(json, "class_name"),
                           WithoutIds(FindMember(json, "config"))};
    return key.dump(-1, ' ', false, KerasJson::error_handler_t::replace);
  }

  const bool is_used_;
  absl::flat_hash_map<int64_t, LayerPtr> numbered_;
  absl::flat_hash_map<std::string, LayerPtr> unnumbered_;
};

class ModelReader {
 public:
  // `shared` is borrowed: it is the same for all models of a file.
  ModelReader(std::string place, int depth, SharedLayers* shared)
      : place_(std::move(place)), depth_(depth), shared_(*shared) {}

  absl::StatusOr<LayerPtr> Read(const KerasObject& model);

 private:
  absl::Status CheckDepth() const;
  absl::StatusOr<LayerPtr> ReadSequential(const KerasJson& config);
  absl::StatusOr<LayerPtr> ReadFunctional(const KerasJson& with_masks);

  // `arguments` are those with which the layer is called. Returns the same
  // layer for all places of one that is shared.
  absl::StatusOr<LayerPtr> ReadLayer(const KerasJson& json,
                                     const KerasJson& arguments);
  absl::StatusOr<LayerPtr> ReadUnsharedLayer(const KerasJson& json,
                                             const KerasJson& arguments);
  absl::StatusOr<LayerOutput> ReadInput(absl::string_view place,
                                        const KerasJson& config);

  // Adds the layer of an entry of a functional model, and what calls it.
  absl::Status AddEntry(const KerasJson& entry);
  absl::Status ConnectAll();
  // Calls the layer, if all its inputs are there. Returns whether they are.
  absl::StatusOr<bool> Connect(const std::string& name, const KerasNode& node);
  // Sets `structure` to how they are nested.
  absl::StatusOr<LayerOutputs> OutputsOf(absl::string_view what,
                                         const KerasJson& json,
                                         std::optional<Structure>* structure);
  // Null if the output is not there yet.
  const LayerOutput* FindOutput(const KerasHistory& history) const;

  const std::string place_;
  const int depth_;
  SharedLayers& shared_;
  // Keras ignores the batch size of an input unless layers have states.
  bool keeps_batch_size_ = false;

  // Of a functional model.
  struct Entry {
    LayerPtr layer;  // Null for an input.
    std::vector<KerasNode> nodes;
    size_t connected_count = 0;
    size_t first_call = 0;  // The number that the file gives the first one.
    std::vector<LayerOutputs> calls;
  };
  std::vector<std::string> names_;  // In the order of the file.
  absl::flat_hash_map<std::string, Entry> entries_;
};

absl::Status ModelReader::CheckDepth() const {
  if (depth_ <= kModelDepthMax) return absl::OkStatus();
  return BadKerasStructure(place_,
                           absl::StrCat("is inside more than ", kModelDepthMax,
                                        " models and layers"));
}

absl::StatusOr<LayerPtr> ModelReader::Read(const KerasObject& model) {
  RETURN_IF_ERROR(CheckDepth());
  keeps_batch_size_ = HasStatefulLayer(model.config);
  absl::StatusOr<LayerPtr> read = model.class_name == "Sequential"
                                      ? ReadSequential(model.config)
                                      : ReadFunctional(model.config);
  RETURN_IF_ERROR(read.status());
  if (FindMember(model.config, "trainable") == false) {
    (*read)->set_trainable(false);
  }
  // Functional models of Keras do not say their policy.
  for (const LayerPtr& layer : (*read)->layers()) {
    if (layer->dtype_policy() != kMixedFloat16Policy) continue;
    (*read)->set_dtype_policy(kMixedFloat16Policy);
  }
  return read;
}

absl::StatusOr<LayerOutput> ModelReader::ReadInput(absl::string_view place,
                                                   const KerasJson& config) {
  const KerasJson& batch_shape = FindMember(config, "batch_shape").is_array()
                                     ? FindMember(config, "batch_shape")
                                     : FindMember(config, "batch_input_shape");
  if (!batch_shape.is_array() || batch_shape.empty()) {
    return BadKerasStructure(place, "has no batch_shape");
  }
  for (const char* const option : {"sparse", "ragged", "optional"}) {
    if (FindMember(config, option) == true) {
      return BadKerasStructure(
          place, absl::StrCat("Muster has no ", option, " inputs"));
    }
  }
  std::vector<int64_t> extents;
  for (const KerasJson& extent : batch_shape) {
    if (!extent.is_null() && !extent.is_number_unsigned()) {
      return BadKerasStructure(place, "batch_shape must consist of integers");
    }
    extents.push_back(extent.is_null() ? Shape::kUnknown
                                       : extent.get<int64_t>());
  }
  const int64_t batch_size = extents.front();
  extents.erase(extents.begin());
  absl::StatusOr<Shape> shape = Shape::Create(extents, /*allow_unknown=*/true);
  if (!shape.ok()) return BadKerasStructure(place, shape.status().message());
  InputLayerOptions options{.name = TextMember(config, "name")};
  if (keeps_batch_size_) options.batch_size = batch_size;
  if (const std::string dtype = TextMember(config, "dtype"); !dtype.empty()) {
    const absl::StatusOr<DType> parsed = ParseDType(dtype);
    if (!parsed.ok()) {
      return BadKerasStructure(place, parsed.status().message());
    }
    options.dtype = *parsed;
  }
  return Input(*shape, options);
}

absl::StatusOr<LayerPtr> ModelReader::ReadSequential(const KerasJson& config) {
  const KerasJson& entries = FindMember(config, "layers");
  if (!entries.is_array()) return BadKerasStructure(place_, "has no layers");
  std::vector<LayerPtr> layers;
  for (const KerasJson& entry : entries) {
    if (TextMember(entry, "class_name") == kInputLayer) {
      ASSIGN_OR_RETURN(const LayerOutput input,
                       ReadInput(absl::StrCat(place_, ", its input"),
                                 FindMember(entry, "config")));
      layers.push_back(input);
      continue;
    }
    KerasJson inner = FindMember(entry, "config");
    if (layers.empty() && FindMember(inner, "batch_input_shape").is_array()) {
      inner.erase("name");  // That of the layer.
      ASSIGN_OR_RETURN(const LayerOutput input,
                       ReadInput(absl::StrCat(place_, ", its input"), inner));
      layers.push_back(input);
    }
    ASSIGN_OR_RETURN(LayerPtr layer, ReadLayer(entry, KerasJson::object()));
    layers.push_back(std::move(layer));
  }
  return Sequential(layers, {.name = TextMember(config, "name")});
}

absl::StatusOr<LayerPtr> ModelReader::ReadFunctional(
    const KerasJson& with_masks) {
  KerasJson config = with_masks;
  RemoveImplicitMasks(&config);
  const KerasJson& entries = FindMember(config, "layers");
  if (!entries.is_array()) return BadKerasStructure(place_, "has no layers");
  for (const KerasJson& entry : entries) RETURN_IF_ERROR(AddEntry(entry));
  RETURN_IF_ERROR(ConnectAll());
  FunctionalOptions options{.name = TextMember(config, "name")};
  ASSIGN_OR_RETURN(LayerOutputs inputs,
                   OutputsOf("input_layers", FindMember(config, "input_layers"),
                             &options.input_structure));
  ASSIGN_OR_RETURN(
      LayerOutputs outputs,
      OutputsOf("output_layers", FindMember(config, "output_layers"),
                &options.output_structure));
  const LayerPtrTo<FunctionalLayer> model =
      Functional(std::move(inputs), std::move(outputs), options);
  if (!model->status().ok()) {
    return BadKerasStructure(place_, model->status().message());
  }
  return LayerPtr(model);
}

absl::Status ModelReader::AddEntry(const KerasJson& entry) {
  const KerasJson& config = FindMember(entry, "config");
  std::string name = TextMember(entry, "name");
  if (name.empty()) name = TextMember(config, "name");
  const std::string place = absl::StrCat(place_, ", layer ", name);
  Entry added;
  if (TextMember(entry, "class_name") == kInputLayer) {
    ASSIGN_OR_RETURN(LayerOutput input, ReadInput(place, config));
    added.calls.push_back(std::move(input));
  } else {
    KerasJson arguments = KerasJson::object();
    const KerasJson& nodes = FindMember(entry, "inbound_nodes");
    added.first_call = FirstCallOf(entry);
    for (const KerasJson& json : nodes) {
      ASSIGN_OR_RETURN(KerasNode node, KerasNodeFrom(place, json));
      DropTraining(place, TextMember(entry, "class_name"), json, &node);
      if (!added.nodes.empty() && node.arguments != arguments) {
        return BadKerasStructure(place, "is called with different arguments");
      }
      arguments = node.arguments;
      added.nodes.push_back(std::move(node));
    }
    ASSIGN_OR_RETURN(const KerasJson layer, LayerOfOperation(place, entry));
    ASSIGN_OR_RETURN(added.layer, ReadLayer(layer, arguments));
  }
  if (!entries_.emplace(name, std::move(added)).second) {
    return BadKerasStructure(place, "there are two layers of this name");
  }
  names_.push_back(std::move(name));
  return absl::OkStatus();
}

absl::Status ModelReader::ConnectAll() {
  // The file may list a layer before those whose outputs it takes.
  bool is_complete = false;
  while (!is_complete) {
    is_complete = true;
    bool has_progress = false;
    const std::string* blocked = nullptr;
    for (const std::string& name : names_) {
      Entry& entry = entries_[name];
      while (entry.connected_count < entry.nodes.size()) {
        ASSIGN_OR_RETURN(const bool is_connected,
                         Connect(name, entry.nodes[entry.connected_count]));
        if (!is_connected) break;
        ++entry.connected_count;
        has_progress = true;
      }
      if (entry.connected_count == entry.nodes.size()) continue;
      is_complete = false;
      blocked = &name;
    }
    if (!is_complete && !has_progress) {
      return BadKerasStructure(
          absl::StrCat(place_, ", layer ", *blocked),
          "its inputs are outputs of no layer, or depend on its own output");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ModelReader::Connect(const std::string& name,
                                          const KerasNode& node) {
  LayerOutputs inputs;
  for (const KerasHistory& history : node.inputs) {
    const LayerOutput* const output = FindOutput(history);
    if (output == nullptr) return false;
    inputs.push_back(*output);
  }
  Entry& entry = entries_[name];
  entry.calls.push_back(internal::CallOnOutputs(
      entry.layer, std::move(inputs), node.training, node.is_reversed));
  return true;
}

const LayerOutput* ModelReader::FindOutput(const KerasHistory& history) const {
  const auto found = entries_.find(history.layer);
  if (found == entries_.end()) return nullptr;
  const std::vector<LayerOutputs>& calls = found->second.calls;
  const size_t call = history.call - found->second.first_call;
  if (call >= calls.size()) return nullptr;
  const LayerOutputs& outputs = calls[call];
  return history.output < outputs.size() ? &outputs[history.output] : nullptr;
}

absl::StatusOr<LayerOutputs> ModelReader::OutputsOf(
    absl::string_view what, const KerasJson& json,
    std::optional<Structure>* structure) {
  const std::string place = absl::StrCat(place_, ", ", what);
  ASSIGN_OR_RETURN(KerasHistories histories, KerasHistoriesFrom(place, json));
  *structure = std::move(histories.structure);
  LayerOutputs outputs;
  for (const KerasHistory& history : histories.leaves) {
    const LayerOutput* const output = FindOutput(history);
    if (output == nullptr) {
      return BadKerasStructure(
          place,
          absl::StrCat("there is no output ", history.output, " of call ",
                       history.call, " of layer ", history.layer));
    }
    outputs.push_back(*output);
  }
  return outputs;
}

// "mixed_bfloat16", or an object that has the name in its config.
absl::StatusOr<DTypePolicy> PolicyFrom(absl::string_view place,
                                       const KerasJson& dtype) {
  if (dtype.is_null()) return CurrentDTypePolicy();
  const std::string name =
      dtype.is_string() ? dtype.get<std::string>()
                        : TextMember(FindMember(dtype, "config"), "name");
  // That of indices; the layers that have it read it as an option.
  if (name == "int64" || name == "int32") return CurrentDTypePolicy();
  const absl::StatusOr<DTypePolicy> policy = ParseDTypePolicy(name);
  if (!policy.ok()) return BadKerasStructure(place, policy.status().message());
  return policy;
}

// A number of Keras' `ngrams` stands for all lengths up to it.
void ExpandNGrams(KerasJson* config) {
  const auto found = config->find("ngrams");
  if (found == config->end() || !found->is_number_integer()) return;
  const int64_t longest = std::min<int64_t>(found->get<int64_t>(), kNGramMax);
  *found = KerasJson::array();
  for (int64_t length = 1; length <= longest; ++length) {
    found->push_back(length);
  }
}

// For a Normalization, null is no default, but statistics over all axes.
void ListNoAxes(KerasObject* object) {
  if (object->class_name != "Normalization") return;
  const auto axis = object->config.find("axis");
  if (axis != object->config.end() && axis->is_null()) {
    *axis = KerasJson::array();
  }
}

// Visits what all layers can have.
void ReadActivityRegularizer(KerasArgumentReader& reader, Layer* layer) {
  constexpr char kArgument[] = "activity_regularizer";
  Regularizer regularizer;
  reader.Visit(kArgument, regularizer);
  if (!regularizer) return;
  if (dynamic_cast<RNNCell*>(layer) != nullptr) {
    reader.Refuse(kArgument, "is not supported for cells");
  }
  layer->set_activity_regularizer(regularizer);
}

absl::StatusOr<LayerPtr> ModelReader::ReadLayer(const KerasJson& json,
                                                const KerasJson& arguments) {
  if (LayerPtr layer = shared_.Find(json); layer != nullptr) return layer;
  ASSIGN_OR_RETURN(LayerPtr layer, ReadUnsharedLayer(json, arguments));
  shared_.Add(json, layer);
  return layer;
}

// Returns a layer of the class, without what its config says.
absl::StatusOr<LayerPtr> MakeLayerOf(absl::string_view place,
                                     absl::string_view class_name) {
  if (class_name == kProgramClass) return MakeProgramLayer({});
  const LayerKind* const kind = FindKerasLayerKind(class_name);
  if (kind == nullptr) return UnknownKerasLayer(place, class_name);
  return kind->make();
}

absl::StatusOr<LayerPtr> ModelReader::ReadUnsharedLayer(
    const KerasJson& json, const KerasJson& arguments) {
  RETURN_IF_ERROR(CheckDepth());
  const std::string name = TextMember(FindMember(json, "config"), "name");
  const std::string place = absl::StrCat(place_, ", layer ", name, " (",
                                         TextMember(json, "class_name"), ")");
  ASSIGN_OR_RETURN(KerasObject object, ParseKerasObject(place, json));
  RETURN_IF_ERROR(CheckName(place, name));
  if (object.class_name == "Sequential" || IsFunctional(object.class_name)) {
    return ModelReader(absl::StrCat(place_, ", model ", name), depth_ + 1,
                       &shared_)
        .Read(object);
  }
  ASSIGN_OR_RETURN(const LayerPtr layer, MakeLayerOf(place, object.class_name));
  layer->set_name(name);
  ASSIGN_OR_RETURN(const DTypePolicy policy,
                   PolicyFrom(place, FindMember(object.config, "dtype")));
  layer->set_dtype_policy(policy);
  object.config.update(arguments);
  ExpandNGrams(&object.config);
  ListNoAxes(&object);
  KerasArgumentReader reader(place, object.config, [&](const KerasJson& inner) {
    return ModelReader(place, depth_ + 1, &shared_)
        .ReadLayer(inner, KerasJson::object());
  });
  layer->VisitConfig(reader);
  ReadActivityRegularizer(reader, layer.get());
  RETURN_IF_ERROR(reader.Finish());
  if (FindMember(object.config, "trainable") == false) {
    layer->set_trainable(false);
  }
  return layer;
}

}  // namespace

absl::StatusOr<LayerPtr> LayersFromKeras(const KerasJson& model) {
  ASSIGN_OR_RETURN(const KerasObject object, ParseKerasObject("model", model));
  if (object.class_name != "Sequential" && !IsFunctional(object.class_name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model is a ", object.class_name,
                     "; only Sequential and functional models have their "
                     "layers in the file"));
  }
  SharedLayers shared(model);
  return ModelReader(absl::StrCat("model ", TextMember(object.config, "name")),
                     1, &shared)
      .Read(object);
}

}  // namespace muster
