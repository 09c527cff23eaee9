#include "common/learn/train/keras/keras_hard_sigmoid.h"

#include <string>
#include <utility>
#include <vector>

#include "common/learn/train/keras/keras_object.h"

namespace muster {
namespace {

// Keras 3 has relu6(x + 3) / 6.
constexpr double kScale = 1.2;

KerasJson LayerJson(const char* class_name, KerasJson config) {
  return {{"module", "keras.layers"},
          {"class_name", class_name},
          {"config", std::move(config)},
          {"registered_name", nullptr}};
}

}  // namespace

KerasJson HardSigmoidKeras2Json() {
  KerasJson layers = KerasJson::array();
  layers.push_back(LayerJson(
      "Rescaling", {{"name", "scale"}, {"scale", kScale}, {"offset", 0.0}}));
  layers.push_back(LayerJson("Activation", {{"name", "hard_sigmoid"},
                                            {"activation", "hard_sigmoid"}}));
  return {{"module", "keras"},
          {"class_name", "Sequential"},
          {"config",
           {{"name", std::string(kHardSigmoidKeras2)},
            {"layers", std::move(layers)}}},
          {"registered_name", nullptr}};
}

bool IsHardSigmoidKeras2(const KerasJson& activation) {
  if (TextMember(activation, "class_name") != "Sequential") return false;
  const KerasJson& layers =
      FindMember(FindMember(activation, "config"), "layers");
  if (!layers.is_array()) return false;
  std::vector<const KerasJson*> computing;
  for (const KerasJson& layer : layers) {
    if (TextMember(layer, "class_name") != "InputLayer") {
      computing.push_back(&layer);
    }
  }
  if (computing.size() != 2) return false;
  const KerasJson& scaling = FindMember(*computing[0], "config");
  return TextMember(*computing[0], "class_name") == "Rescaling" &&
         FindMember(scaling, "scale") == kScale &&
         FindMember(scaling, "offset") == 0 &&
         TextMember(*computing[1], "class_name") == "Activation" &&
         TextMember(FindMember(*computing[1], "config"), "activation") ==
             "hard_sigmoid";
}

}  // namespace muster
