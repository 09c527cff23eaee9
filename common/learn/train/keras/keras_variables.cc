#include "common/learn/train/keras/keras_variables.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/tensor.h"
#include "common/io/keras/hdf5_reader.h"
#include "common/learn/nn/adaptable_layer.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/normalization.h"
#include "common/learn/nn/preprocessing/category_output.h"
#include "common/learn/nn/preprocessing/lookup.h"
#include "common/learn/nn/preprocessing/text_vectorization.h"
#include "common/learn/nn/preprocessing/vocabulary.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/nn/weight.h"
#include "common/learn/nn/wrapper.h"
#include "common/learn/train/keras/keras_argument_reader.h"
#include "common/learn/train/keras/keras_object.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

bool IsModel(const Layer& layer) {
  return dynamic_cast<const SequentialLayer*>(&layer) != nullptr ||
         dynamic_cast<const FunctionalLayer*>(&layer) != nullptr;
}

constexpr char kGroupedQueryAttention[] = "GroupedQueryAttention";

// Returns the name of the class in Keras' source, of which paths are made. Only
// one differs from the name in the config.
std::string ClassOf(const Layer& layer) {
  std::string kind = layer.kind();
  return kind == "GroupQueryAttention" ? kGroupedQueryAttention : kind;
}

// Visits the layers that are neither models nor wrappers without weights of
// their own, with their groups.
using LayerVisitor =
    std::function<void(Layer& layer, const std::string& group)>;

void VisitLayers(const Layer& model, const std::string& group,
                 const LayerVisitor& visit,
                 absl::flat_hash_set<const Layer*>* visited);

// Visits the layer itself, or those inside it.
void VisitLayer(Layer& layer, const std::string& path,
                const LayerVisitor& visit,
                absl::flat_hash_set<const Layer*>* visited) {
  if (!visited->insert(&layer).second) return;
  if (IsModel(layer)) return VisitLayers(layer, path + "/", visit, visited);
  const auto* const wrapper = dynamic_cast<const WrapperLayer*>(&layer);
  if (wrapper == nullptr) return visit(layer, path);
  if (!wrapper->own_weights().empty()) visit(layer, path);
  for (const WrapperLayer::Part& part : wrapper->parts()) {
    VisitLayer(*part.layer, absl::StrCat(path, "/", part.attribute), visit,
               visited);
  }
}

void VisitLayers(const Layer& model, const std::string& group,
                 const LayerVisitor& visit,
                 absl::flat_hash_set<const Layer*>* visited) {
  std::map<std::string, int> counts;
  for (const LayerPtr& layer : model.layers()) {
    std::string name = ToSnakeCase(ClassOf(*layer));
    const int count = counts[name]++;
    if (count > 0) absl::StrAppend(&name, "_", count);
    VisitLayer(*layer, absl::StrCat(group, "layers/", name), visit, visited);
  }
}

// The attribute of Keras' layer that has the part of a layer which Muster names
// like Keras' weights.
absl::string_view LayerAttribute(absl::string_view part) {
  static constexpr struct {
    absl::string_view part;
    absl::string_view attribute;
  } kAttributes[] = {
      {"attention_output", "output_dense"},
      {"conv_lstm_cell", "cell"},
      {"gru_cell", "cell"},
      {"key", "key_dense"},
      {"lstm_cell", "cell"},
      {"query", "query_dense"},
      {"simple_rnn_cell", "cell"},
      {"value", "value_dense"},
  };
  for (const auto& entry : kAttributes) {
    if (entry.part == part) return entry.attribute;
  }
  return part;
}

std::string PathOfPart(const Layer& layer, const std::string& path,
                       absl::string_view part) {
  // Keras has the parts of this layer under their private names only.
  const bool is_private = ClassOf(layer) == kGroupedQueryAttention;
  return absl::StrCat(path, is_private ? "/_" : "/", LayerAttribute(part));
}

template <typename T>
std::optional<Tensor> WeightsOf(const Vocabulary<T>& vocabulary) {
  const bool has_weights =
      vocabulary.options().output_mode == CategoryOutput::kTfIdf;
  return has_weights ? std::optional(vocabulary.idf_weights()) : std::nullopt;
}

// The weights of the tokens of a lookup that has them.
std::optional<Tensor> IdfWeightsOf(const Layer& layer) {
  if (const auto* text = dynamic_cast<const TextVectorizationLayer*>(&layer)) {
    return WeightsOf(text->vocabulary());
  }
  if (const auto* strings = dynamic_cast<const StringLookupLayer*>(&layer)) {
    return WeightsOf(strings->vocabulary());
  }
  if (const auto* integers = dynamic_cast<const IntegerLookupLayer*>(&layer)) {
    return WeightsOf(integers->vocabulary());
  }
  return std::nullopt;
}

// The groups of a lookup with weights. Keras' TextVectorization saves them for
// itself and for the lookup in it.
std::vector<KerasGroup> GroupsOfLookup(const Layer& layer,
                                       const std::string& path,
                                       const Tensor& weights) {
  std::vector<std::string> paths = {path};
  if (dynamic_cast<const TextVectorizationLayer*>(&layer) != nullptr) {
    paths.push_back(path + "/_lookup_layer");
  }
  std::vector<KerasGroup> groups;
  for (const std::string& group : paths) {
    groups.push_back({.path = group,
                      .name = layer.name(),
                      .constants = {{group + "/vars/idf_weights", weights}}});
  }
  return groups;
}

KerasGroup GroupOfWrapper(const WrapperLayer& wrapper,
                          const std::string& path) {
  KerasGroup group{.path = path, .name = wrapper.name()};
  for (const Weight& weight : wrapper.own_weights()) {
    group.variables.push_back(
        {.variable = weight.name(),
         .path = absl::StrCat(path, "/vars/", group.variables.size()),
         .type = weight.handle().type});
  }
  return group;
}

// The groups of one layer: its own, and one for each part that has weights.
std::vector<KerasGroup> GroupsOf(const Layer& layer, const std::string& path) {
  if (const std::optional<Tensor> idf_weights = IdfWeightsOf(layer)) {
    return GroupsOfLookup(layer, path, *idf_weights);
  }
  if (const auto* wrapper = dynamic_cast<const WrapperLayer*>(&layer)) {
    return {GroupOfWrapper(*wrapper, path)};
  }
  std::vector<Weight> weights = layer.weights();
  // As Keras has them in a layer.
  std::stable_partition(
      weights.begin(), weights.end(),
      [](const Weight& weight) { return weight.spec().trainable(); });
  std::vector<KerasGroup> groups;
  for (const Weight& weight : weights) {
    absl::string_view local = weight.name();
    absl::ConsumePrefix(&local, absl::StrCat(layer.path(), "/"));
    const size_t slash = local.rfind('/');
    const bool has_part = slash != absl::string_view::npos;
    const absl::string_view part = has_part ? local.substr(0, slash) : "";
    const std::string group = has_part ? PathOfPart(layer, path, part) : path;
    auto found = std::find_if(
        groups.begin(), groups.end(),
        [&](const KerasGroup& other) { return other.path == group; });
    if (found == groups.end()) {
      groups.push_back(
          {.path = group, .name = has_part ? std::string(part) : layer.name()});
      groups.back().is_adapted =
          dynamic_cast<const NormalizationLayer*>(&layer) != nullptr;
      found = groups.end() - 1;
    }
    found->variables.push_back(
        {.variable = weight.name(),
         .path = absl::StrCat(group, "/vars/", found->variables.size()),
         .type = weight.handle().type});
  }
  return groups;
}

// The path in a file of Keras 2.13. It calls lists of layers otherwise, and
// counts each layer with weights twice: "dense", "dense_2", "dense_4".
std::string PathIn213(const std::string& path) {
  std::vector<std::string> parts = absl::StrSplit(path, '/');
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    if (parts[i] != "layers") continue;
    parts[i] = "_layer_checkpoint_dependencies";
    std::string& layer = parts[i + 1];
    const size_t end_of_class = layer.rfind('_');
    int64_t number = 0;
    if (end_of_class != std::string::npos &&
        absl::SimpleAtoi(layer.substr(end_of_class + 1), &number)) {
      layer = absl::StrCat(layer.substr(0, end_of_class), "_", 2 * number);
    }
  }
  return absl::StrJoin(parts, "/");
}

// The names that versions of Keras give a group, that of Keras 3 first.
std::vector<std::string> NamesOfGroup(const std::string& path) {
  std::vector<std::string> names = {path};
  // Keras 2 has the parts of a layer under their private names.
  const size_t slash = path.rfind('/');
  if (slash != std::string::npos) {
    names.push_back(
        absl::StrCat(path.substr(0, slash), "/_", path.substr(slash + 1)));
  }
  for (size_t i = 0, count = names.size(); i < count; ++i) {
    names.push_back(PathIn213(names[i]));
  }
  for (size_t i = 0, count = names.size(); i < count; ++i) {
    names.push_back(absl::StrReplaceAll(names[i], {{"/", "\\"}}));
  }
  return names;
}

absl::StatusOr<KerasJson> NumbersAt(const Hdf5Reader& file,
                                    const std::string& path) {
  ASSIGN_OR_RETURN(const Tensor tensor, file.Read(path));
  KerasJson numbers = KerasJson::array();
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    numbers.push_back(tensor.ElementAsDouble(i));
  }
  return numbers;
}

// The tokens in the lines of a file, special ones included. Keras on Windows
// writes lines that end in \r\n.
absl::StatusOr<KerasJson> TokensIn(absl::string_view text, bool are_integers) {
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  for (std::string& line : lines) {
    if (absl::EndsWith(line, "\r")) line.pop_back();
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  if (!are_integers) return KerasJson(lines);
  KerasJson tokens = KerasJson::array();
  for (const std::string& line : lines) {
    int64_t token = 0;
    if (!absl::SimpleAtoi(line, &token)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "vocabulary.txt has \"", line, "\"; expected an integer"));
    }
    tokens.push_back(token);
  }
  return tokens;
}

// The options of a layer which a file has besides the config; empty if there
// are none. Numbers of a file that is null are 1.
absl::StatusOr<KerasJson> StateOf(
    const Layer& layer, const std::string& path, const Hdf5Reader* file,
    const std::map<std::string, std::string>& assets) {
  KerasJson state = KerasJson::object();
  const auto* const adaptable = dynamic_cast<const AdaptableLayer*>(&layer);
  if (adaptable == nullptr || !adaptable->NeedsData()) return state;
  const std::string group = file == nullptr ? path : GroupInFile(*file, path);
  if (dynamic_cast<const NormalizationLayer*>(&layer) != nullptr) {
    if (file == nullptr) {
      return KerasJson{{"mean", {1.0}}, {"variance", {1.0}}};
    }
    if (!file->Contains(group + "/vars/1")) return state;
    ASSIGN_OR_RETURN(state["mean"], NumbersAt(*file, group + "/vars/0"));
    ASSIGN_OR_RETURN(state["variance"], NumbersAt(*file, group + "/vars/1"));
    return state;
  }
  auto vocabulary = assets.end();
  for (const std::string& name : NamesOfGroup(path)) {
    if (vocabulary != assets.end()) break;
    vocabulary = assets.find(name + "/vocabulary.txt");
  }
  if (vocabulary == assets.end()) return state;
  const bool are_integers =
      dynamic_cast<const IntegerLookupLayer*>(&layer) != nullptr;
  ASSIGN_OR_RETURN(state["vocabulary"],
                   TokensIn(vocabulary->second, are_integers));
  if (IdfWeightsOf(layer).has_value()) {
    KerasJson weights = std::vector<double>(state["vocabulary"].size(), 1.0);
    if (file != nullptr) {
      ASSIGN_OR_RETURN(weights, NumbersAt(*file, group + "/vars/idf_weights"));
    }
    // Without the zeros of pad_to_max_tokens.
    while (weights.size() > state["vocabulary"].size()) {
      weights.erase(weights.size() - 1);
    }
    state["idf_weights"] = std::move(weights);
  }
  return state;
}

absl::Status AdoptStates(const Layer& model, const Hdf5Reader* file,
                         const std::map<std::string, std::string>& assets) {
  absl::Status status;
  absl::flat_hash_set<const Layer*> visited;
  const auto adopt = [&](Layer& layer, const std::string& path) {
    absl::StatusOr<KerasJson> state = StateOf(layer, path, file, assets);
    if (status.ok()) status = state.status();
    if (!state.ok() || state->empty()) return;
    KerasArgumentReader reader(absl::StrCat("layer ", layer.name()), *state);
    layer.VisitConfig(reader);
    if (status.ok()) status = reader.Finish();
  };
  VisitLayers(model, "", adopt, &visited);
  return status;
}

}  // namespace

absl::StatusOr<std::vector<KerasGroup>> KerasGroupsOf(const Layer& model) {
  if (!IsModel(model)) {
    return absl::UnimplementedError(absl::StrCat(
        "files of Keras are for Sequential and functional models; this is a ",
        model.kind(), ". SaveCheckpoint() saves any model"));
  }
  std::vector<KerasGroup> groups;
  absl::flat_hash_set<const Layer*> visited;
  VisitLayers(
      model, "",
      [&](Layer& layer, const std::string& path) {
        for (KerasGroup& group : GroupsOf(layer, path)) {
          groups.push_back(std::move(group));
        }
      },
      &visited);
  return groups;
}

std::string GroupInFile(const Hdf5Reader& file, const std::string& path) {
  for (const std::string& name : NamesOfGroup(path)) {
    if (file.Contains(name + "/vars")) return name;
  }
  return path;
}

absl::Status AdoptKerasStates(
    const Layer& model, const Hdf5Reader& file,
    const std::map<std::string, std::string>& assets) {
  return AdoptStates(model, &file, assets);
}

absl::Status AdoptKerasStateSizes(
    const Layer& model, const std::map<std::string, std::string>& assets) {
  return AdoptStates(model, /*file=*/nullptr, assets);
}

}  // namespace muster
