#include "common/learn/train/keras/keras_legacy_config.h"

#include <cstddef>
#include <utility>

#include "common/learn/train/keras/keras_object.h"

namespace muster {
namespace {

// A tensor of Keras 2, [layer, call, output], as Keras 3 writes it. Others stay
// as they are.
KerasJson AsTensor(const KerasJson& json) {
  if (!IsKerasHistory(json)) return json;
  return {{"class_name", "__keras_tensor__"},
          {"config", {{"keras_history", json}}}};
}

}  // namespace

bool IsKerasHistory(const KerasJson& json) {
  return json.is_array() && json.size() >= 3 && json[0].is_string() &&
         json[1].is_number_unsigned() && json[2].is_number_unsigned();
}

KerasJson NodeFromLegacy(const KerasJson& entries) {
  KerasJson args = KerasJson::array();
  KerasJson keywords = KerasJson::object();
  for (const KerasJson& entry : entries) {
    args.push_back(AsTensor(entry));
    if (!IsKerasHistory(entry) || entry.size() < 4) continue;
    for (const auto& [name, value] : entry[3].items()) {
      KerasJson named = AsTensor(value);
      // A list of them: the states of a recurrent layer.
      if (named.is_array()) {
        for (KerasJson& inner : named) inner = AsTensor(inner);
      }
      keywords[name] = std::move(named);
    }
  }
  return {{"args", std::move(args)}, {"kwargs", std::move(keywords)}};
}

size_t FirstCallOf(const KerasJson& entry) {
  const KerasJson& nodes = FindMember(entry, "inbound_nodes");
  const KerasJson& layers = FindMember(FindMember(entry, "config"), "layers");
  const bool is_legacy =
      nodes.is_array() && !nodes.empty() && nodes.front().is_array();
  const bool begins_with_input =
      layers.is_array() && !layers.empty() &&
      TextMember(layers.front(), "class_name") == "InputLayer";
  return is_legacy && begins_with_input ? 1 : 0;
}

}  // namespace muster
