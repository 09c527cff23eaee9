#include "common/learn/train/keras/keras_layer_kind.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/layers.h"
#include "common/learn/train/keras/keras_object.h"

namespace muster {
namespace {

// Keras has some classes under a second name, which files may have, too.
std::string WithoutAlias(absl::string_view class_name) {
  const std::string short_names = absl::StrReplaceAll(
      class_name, {{"Convolution", "Conv"}, {"AvgPool", "AveragePool"}});
  return absl::StrReplaceAll(
      short_names, {{"Pool1D", "Pooling1D"},
                    {"Pool2D", "Pooling2D"},
                    {"Pool3D", "Pooling3D"},
                    {"GroupedQueryAttention", "GroupQueryAttention"}});
}

}  // namespace

const LayerKind* FindKerasLayerKind(absl::string_view class_name) {
  // The class is what a layer of the kind says of itself.
  static const auto& kKinds = *[] {
    auto* const kinds = new absl::flat_hash_map<std::string, const LayerKind*>;
    for (const LayerKind& kind : kLayerKinds) {
      kinds->emplace(kind.make()->kind(), &kind);
    }
    return kinds;
  }();
  const auto found = kKinds.find(WithoutAlias(class_name));
  return found == kKinds.end() ? nullptr : found->second;
}

absl::Status UnknownKerasLayer(absl::string_view place,
                               absl::string_view class_name) {
  std::vector<std::string> classes;
  for (const LayerKind& kind : kLayerKinds) {
    classes.push_back(kind.make()->kind());
  }
  return UnknownKerasName(place, "layer", class_name,
                          {classes.begin(), classes.end()});
}

}  // namespace muster
