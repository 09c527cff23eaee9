#include "common/learn/train/keras/keras_legacy_file.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/variables/variable_state.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/core/tensor/tensor.h"
#include "common/io/keras/hdf5_reader.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/normalization.h"
#include "common/learn/nn/weight.h"
#include "common/learn/train/base/load_weights_options.h"
#include "common/learn/train/keras/converted_state.h"

namespace muster {
namespace {

constexpr char kLayerNames[] = "layer_names";
constexpr char kWeightNames[] = "weight_names";
constexpr char kModelConfig[] = "model_config";
constexpr char kKerasVersion[] = "keras_version";
// The group with the layers; a file of weights has them in its root.
constexpr char kModelWeights[] = "model_weights";

std::string PathBelow(absl::string_view group, absl::string_view name) {
  return group.empty() ? std::string(name) : absl::StrCat(group, "/", name);
}

// Lists that do not fit into an attribute are numbered parts.
absl::StatusOr<std::vector<std::string>> ReadNames(
    const Hdf5Reader& file, const std::string& group,
    absl::string_view attribute) {
  if (file.HasAttribute(group, attribute)) {
    return file.ReadTexts(group, attribute);
  }
  std::vector<std::string> names;
  for (int i = 0;; ++i) {
    const std::string part = absl::StrCat(attribute, i);
    if (i > 0 && !file.HasAttribute(group, part)) return names;
    ASSIGN_OR_RETURN(const std::vector<std::string> some,
                     file.ReadTexts(group, part));
    names.insert(names.end(), some.begin(), some.end());
  }
}

struct SavedLayer {
  std::string name;
  std::vector<std::string> paths;  // Of the weights, in the file.
};

// The layers that have weights.
absl::StatusOr<std::vector<SavedLayer>> SavedLayers(const Hdf5Reader& file) {
  const std::string root = file.Contains(kModelWeights) ? kModelWeights : "";
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   ReadNames(file, root, kLayerNames));
  std::vector<SavedLayer> layers;
  for (const std::string& name : names) {
    SavedLayer layer{.name = name};
    const std::string group = PathBelow(root, name);
    ASSIGN_OR_RETURN(const std::vector<std::string> weights,
                     ReadNames(file, group, kWeightNames));
    for (const std::string& weight : weights) {
      layer.paths.push_back(PathBelow(group, weight));
    }
    if (!layer.paths.empty()) layers.push_back(std::move(layer));
  }
  return layers;
}

struct OwnLayer {
  const Layer* layer = nullptr;
  std::vector<Weight> weights;  // In the order of the file.
};

std::vector<OwnLayer> OwnLayers(const Layer& model) {
  std::vector<OwnLayer> layers;
  for (const LayerPtr& layer : model.layers()) {
    std::vector<Weight> weights = layer->weights();
    std::stable_partition(
        weights.begin(), weights.end(),
        [](const Weight& weight) { return weight.trainable(); });
    if (!weights.empty()) layers.push_back({layer.get(), std::move(weights)});
  }
  return layers;
}

absl::Status CheckNoNormalization(const Hdf5Reader& file, const Layer& layer) {
  if (dynamic_cast<const NormalizationLayer*>(&layer) != nullptr) {
    return absl::UnimplementedError(absl::StrCat(
        file.name(), ": the mean and variance of layer ", layer.name(),
        " are not read from *.h5; save the model as *.keras"));
  }
  for (const LayerPtr& inner : layer.layers()) {
    RETURN_IF_ERROR(CheckNoNormalization(file, *inner));
  }
  return absl::OkStatus();
}

absl::Status ReadLayer(const Hdf5Reader& file, const SavedLayer& saved,
                       const OwnLayer& own, ConvertedState* state) {
  const std::string place = absl::StrCat(file.name(), ": layer ", saved.name);
  if (saved.paths.size() != own.weights.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        place, " has ", saved.paths.size(), " weights; layer ",
        own.layer->name(), " of this model has ", own.weights.size()));
  }
  ConvertedState of_layer;
  for (size_t i = 0; i < saved.paths.size(); ++i) {
    const Weight& weight = own.weights[i];
    ASSIGN_OR_RETURN(Tensor value, file.Read(saved.paths[i]));
    if (value.type() != weight.handle().type) {
      return absl::InvalidArgumentError(
          absl::StrCat(file.name(), ": ", saved.paths[i], " is ",
                       value.type().ToString(), "; ", weight.name(),
                       " of this model is ", weight.handle().type.ToString()));
    }
    of_layer.emplace(weight.name(), VariableState{.value = std::move(value)});
  }
  state->merge(of_layer);
  return absl::OkStatus();
}

// The pairs of a layer of the file and one of the model.
absl::StatusOr<std::vector<std::pair<const SavedLayer*, const OwnLayer*>>>
Pairs(const Hdf5Reader& file, const std::vector<SavedLayer>& saved,
      const std::vector<OwnLayer>& own, bool by_name) {
  std::vector<std::pair<const SavedLayer*, const OwnLayer*>> pairs;
  if (by_name) {
    for (const SavedLayer& layer : saved) {
      for (const OwnLayer& other : own) {
        if (other.layer->name() != layer.name) continue;
        pairs.emplace_back(&layer, &other);
      }
    }
    return pairs;
  }
  if (saved.size() != own.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        file.name(), " has ", saved.size(), " layers with weights; this model ",
        "has ", own.size(), ". by_name loads those whose names agree"));
  }
  for (size_t i = 0; i < saved.size(); ++i) {
    pairs.emplace_back(&saved[i], &own[i]);
  }
  return pairs;
}

}  // namespace

bool IsLegacyKerasFile(const Hdf5Reader& file) {
  return file.Contains(kModelWeights) || file.HasAttribute("", kLayerNames) ||
         file.HasAttribute("", absl::StrCat(kLayerNames, 0));
}

absl::StatusOr<std::string> LegacyModelJson(const Hdf5Reader& file) {
  if (!file.HasAttribute("", kModelConfig)) {
    return absl::InvalidArgumentError(absl::StrCat(
        file.name(),
        " has no model_config: it has weights only, which LoadWeights() loads "
        "into a model"));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                   file.ReadTexts("", kModelConfig));
  return texts.empty() ? std::string() : texts.front();
}

std::string LegacyKerasVersion(const Hdf5Reader& file) {
  for (const char* const group : {"", kModelWeights}) {
    if (*group != '\0' && !file.Contains(group)) continue;
    if (!file.HasAttribute(group, kKerasVersion)) continue;
    const absl::StatusOr<std::vector<std::string>> texts =
        file.ReadTexts(group, kKerasVersion);
    if (texts.ok() && !texts->empty()) return texts->front();
  }
  return "";
}

absl::Status ReadLegacyWeights(const Hdf5Reader& file, const Layer& model,
                               const LoadWeightsOptions& options,
                               ConvertedState* state) {
  RETURN_IF_ERROR(CheckNoNormalization(file, model));
  ASSIGN_OR_RETURN(const std::vector<SavedLayer> saved, SavedLayers(file));
  const std::vector<OwnLayer> own = OwnLayers(model);
  ASSIGN_OR_RETURN(const auto pairs, Pairs(file, saved, own, options.by_name));
  for (const auto& [from, to] : pairs) {
    const absl::Status read = ReadLayer(file, *from, *to, state);
    if (absl::IsInvalidArgument(read) && options.skip_mismatch) {
      LOG(WARNING) << read.message() << "; it stays as it is";
      continue;
    }
    RETURN_IF_ERROR(read);
  }
  return absl::OkStatus();
}

}  // namespace muster
