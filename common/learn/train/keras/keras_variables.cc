#include "common/learn/train/keras/keras_variables.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/core/tensor/tensor.h"
#include "common/io/keras/hdf5_reader.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/normalization.h"
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

// Visits the layers that are neither models nor wrappers, with their groups.
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
    std::string name = ToSnakeCase(layer->kind());
    const int count = counts[name]++;
    if (count > 0) absl::StrAppend(&name, "_", count);
    VisitLayer(*layer, absl::StrCat(group, "layers/", name), visit, visited);
  }
}

// The attribute of Keras' layer that has the part of a layer which Muster names
// like Keras' weights.
absl::string_view AttributeOf(absl::string_view part) {
  static constexpr struct {
    absl::string_view part;
    absl::string_view attribute;
  } kAttributes[] = {
      {"attention_output", "output_dense"},
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

// The groups of one layer: its own, and one for each part that has weights.
std::vector<KerasGroup> GroupsOf(const Layer& layer, const std::string& path) {
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
    const std::string group =
        has_part ? absl::StrCat(path, "/", AttributeOf(part)) : path;
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

absl::Status AdoptKerasStatistics(const Layer& model, const Hdf5Reader& file) {
  absl::Status status;
  absl::flat_hash_set<const Layer*> visited;
  const auto numbers_at = [&](const std::string& path) {
    KerasJson numbers = KerasJson::array();
    const absl::StatusOr<Tensor> tensor = file.Read(path);
    if (!tensor.ok()) {
      if (status.ok()) status = tensor.status();
      return numbers;
    }
    for (int64_t i = 0; i < tensor->element_count(); ++i) {
      numbers.push_back(tensor->ElementAsDouble(i));
    }
    return numbers;
  };
  VisitLayers(
      model, "",
      [&](Layer& layer, const std::string& path) {
        const bool is_adapted =
            dynamic_cast<const NormalizationLayer*>(&layer) != nullptr &&
            file.Contains(path + "/vars/1");
        if (!is_adapted) return;
        const KerasJson statistics = {
            {"mean", numbers_at(path + "/vars/0")},
            {"variance", numbers_at(path + "/vars/1")}};
        KerasArgumentReader reader(absl::StrCat("layer ", layer.name()),
                                   statistics);
        layer.VisitConfig(reader);
        if (status.ok()) status = reader.Finish();
      },
      &visited);
  return status;
}

}  // namespace muster
