#include "common/learn/train/keras/keras_unnamed_activation.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/learn/train/keras/keras_object.h"

namespace muster {
namespace {

constexpr absl::string_view kHardSigmoidKeras2 = "hard_sigmoid_keras2";
constexpr absl::string_view kGelu = "gelu";
constexpr absl::string_view kGeluApproximate = "gelu_approximate";

// The module of the operation, which Keras does not export.
constexpr char kOperations[] = "keras.src.ops.nn";

// Keras 3 has relu6(x + 3) / 6.
constexpr double kScale = 1.2;

KerasJson LayerJson(const char* class_name, KerasJson config) {
  return {{"module", "keras.layers"},
          {"class_name", class_name},
          {"config", std::move(config)},
          {"registered_name", nullptr}};
}

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

std::string GeluOf(const KerasJson& activation) {
  if (TextMember(activation, "class_name") != "Gelu") return "";
  const KerasJson& config = FindMember(activation, "config");
  return std::string(
      FindMember(config, "approximate") == false ? kGelu : kGeluApproximate);
}

}  // namespace

std::optional<KerasJson> UnnamedActivationJson(absl::string_view name) {
  if (name == kHardSigmoidKeras2) return HardSigmoidKeras2Json();
  if (name != kGeluApproximate) return std::nullopt;
  return KerasJson{{"module", kOperations},
                   {"class_name", "Gelu"},
                   {"config", {{"approximate", true}}},
                   {"registered_name", "Gelu"}};
}

std::string UnnamedActivationOf(const KerasJson& activation) {
  if (IsHardSigmoidKeras2(activation)) return std::string(kHardSigmoidKeras2);
  return GeluOf(activation);
}

}  // namespace muster
