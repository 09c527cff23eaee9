#include "tests/golden/argument_setter.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initializer.h"
#include "common/core/base/check.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/constraints.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer_ptr.h"
#include "common/learn/nn/layers/layers.h"
#include "common/learn/nn/regularizers.h"
#include "nlohmann/json.hpp"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

Json Object(const std::string& class_name, Json config) {
  return {{"class_name", class_name}, {"config", std::move(config)}};
}

// Makes a layer from the JSON of the base: its class and its arguments.
LayerPtr MakeLayer(const Json& json) {
  for (const LayerKind& kind : kLayerKinds) {
    LayerPtr layer = kind.make();
    if (layer->kind() != json.at("class_name").get<std::string>()) continue;
    const ClassArguments arguments{.base = json.at("config")};
    ArgumentSetter setter(arguments, "", 0);
    layer->VisitConfig(setter);
    return layer;
  }
  return nullptr;
}

// Parses a value of JSON. A list with one entry may be written as that entry.
template <typename T>
T Parsed(const Json& json) {
  if constexpr (requires(T values) { values.push_back({}); } &&
                !std::is_same_v<T, std::string>) {
    if (!json.is_array()) return {json.get<typename T::value_type>()};
  }
  return json.get<T>();
}

// Returns a list with as many entries as `values`, but at least one.
template <typename T>
std::vector<T> Filled(const std::vector<T>& values, T value) {
  return std::vector<T>(std::max<size_t>(values.size(), 1), value);
}

}  // namespace

const Json& ArgumentSetter::BaseOf(ConfigName name) {
  static const auto& kNull = *new Json();
  const auto found = arguments_.base.find(std::string(name.keras));
  return found == arguments_.base.end() ? kNull : *found;
}

void ArgumentSetter::Choose(Json meant) {
  is_set_ = true;
  intended_ = std::move(meant);
}

bool ArgumentSetter::IsChosen(ConfigName name, size_t count, size_t* index) {
  if (name.keras.empty()) return false;
  // IsPresent() may have added the name already.
  if (names_.empty() || names_.back() != name.keras) {
    names_.emplace_back(name.keras);
    has_none_ = false;
  }
  if (name.keras != argument_) return false;
  const int first = has_none_ ? 1 : 0;
  if (variant_ < first) return false;
  *index = variant_ - first;
  return *index < count;
}

template <typename T>
void ArgumentSetter::Set(ConfigName name, T& value,
                         const std::vector<T>& variants) {
  if (const Json& base = BaseOf(name); !base.is_null()) value = Parsed<T>(base);
  std::vector<T> values = variants;
  if (const auto given = arguments_.values.find(std::string(name.keras));
      given != arguments_.values.end()) {
    values = given->get<std::vector<T>>();
  }
  size_t index = 0;
  if (!IsChosen(name, values.size(), &index)) return;
  value = values[index];
  Choose(value);
}

void ArgumentSetter::Visit(ConfigName name, bool& value) {
  bool wide = value;
  if (const Json& base = BaseOf(name); !base.is_null()) wide = base.get<bool>();
  size_t index = 0;
  if (IsChosen(name, 2, &index)) {
    wide = index == 1;
    Choose(wide);
  }
  value = wide;
}

void ArgumentSetter::Visit(ConfigName name, int64_t& value) {
  Set(name, value, {0, 1, 2, 3, -1, int64_t{1} << 31});
}

void ArgumentSetter::Visit(ConfigName name, double& value) {
  Set(name, value, {0, 1, 0.5, -1, 1e-7, 1e30});
}

void ArgumentSetter::Visit(ConfigName name, uint64_t& seed) {
  Set<uint64_t>(name, seed,
                {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
                 0x7fffffffffffffff, 0xffffffffffffffff});
  if (name.keras != argument_ || !is_set_) return;
  // Keras stores signed 64-bit numbers.
  intended_ = seed == 0 ? Json(nullptr) : Json(static_cast<int64_t>(seed));
}

void ArgumentSetter::Visit(ConfigName name, std::string& value) {
  Set<std::string>(name, value, {"", "a"});
}

void ArgumentSetter::Visit(ConfigName name, std::vector<int64_t>& values) {
  Set<std::vector<int64_t>>(
      name, values,
      {{}, Filled<int64_t>(values, 1), Filled<int64_t>(values, 2)});
  if (name.keras == argument_ && is_set_ && values.empty()) intended_ = nullptr;
}

void ArgumentSetter::Visit(ConfigName name, std::vector<double>& values) {
  Set<std::vector<double>>(
      name, values,
      {{}, Filled(values, 0.0), Filled(values, 0.25), Filled(values, 1.0)});
  if (name.keras == argument_ && is_set_ && values.empty()) intended_ = nullptr;
}

void ArgumentSetter::Visit(ConfigName name, std::vector<std::string>& values) {
  Set<std::vector<std::string>>(name, values, {{}, {"a", "b"}, {"\"é\n"}});
  if (name.keras == argument_ && is_set_ && values.empty()) intended_ = nullptr;
}

void ArgumentSetter::Visit(ConfigName name, Initializer& value) {
  size_t index = 0;
  if (!IsChosen(name, 2, &index)) return;
  if (index == 0) {
    value = RandomUniform({.minval = -1, .maxval = 0, .seed = 3});
    return Choose(
        Object("RandomUniform", {{"minval", -1}, {"maxval", 0}, {"seed", 3}}));
  }
  value = Ones();
  Choose(Object("Ones", Json::object()));
}

void ArgumentSetter::Visit(ConfigName name, Regularizer& value) {
  size_t index = 0;
  if (!IsChosen(name, 2, &index)) return;
  if (index == 0) {
    value = L1L2({.l1 = 0.25, .l2 = 0.5});
    return Choose(Object("L1L2", {{"l1", 0.25}, {"l2", 0.5}}));
  }
  value = Regularizer();
  Choose(nullptr);
}

void ArgumentSetter::Visit(ConfigName name, Constraint& value) {
  size_t index = 0;
  if (!IsChosen(name, 2, &index)) return;
  if (index == 0) {
    value = MinMaxNorm({.min_value = 0.5, .rate = 0.25, .axis = {}});
    return Choose(Object("MinMaxNorm", {{"min_value", 0.5},
                                        {"max_value", 1.0},
                                        {"rate", 0.25},
                                        {"axis", nullptr}}));
  }
  value = Constraint();
  Choose(nullptr);
}

void ArgumentSetter::Visit(ConfigName name, LayerPtr& layer) {
  if (const Json& base = BaseOf(name); !base.is_null()) layer = MakeLayer(base);
  const auto given = arguments_.values.find(std::string(name.keras));
  const size_t count =
      given == arguments_.values.end() ? 0 : given.value().size();
  size_t index = 0;
  if (!IsChosen(name, count, &index)) return;
  const Json& chosen = given.value().at(index);
  layer = chosen.is_null() ? nullptr : MakeLayer(chosen);
  Choose(chosen);
}

void ArgumentSetter::VisitLayers(ConfigName name,
                                 std::vector<LayerPtr>& layers) {
  const auto given = arguments_.values.find(std::string(name.keras));
  const size_t count =
      given == arguments_.values.end() ? 0 : given.value().size();
  size_t index = 0;
  const bool is_chosen = IsChosen(name, count, &index);
  const Json& chosen = is_chosen ? given.value().at(index) : BaseOf(name);
  if (chosen.is_null()) return;
  layers.clear();
  for (const Json& layer : chosen) layers.push_back(MakeLayer(layer));
  if (is_chosen) Choose(chosen);
}

void ArgumentSetter::VisitChoice(ConfigName name, int& index,
                                 absl::Span<const absl::string_view> names) {
  const auto find = [&](const Json& base) {
    const auto found =
        std::find(names.begin(), names.end(), base.get<std::string>());
    MUSTER_CHECK(found != names.end());
    return static_cast<int>(found - names.begin());
  };
  if (const Json& base = BaseOf(name); !base.is_null()) index = find(base);
  Json variants(std::vector<std::string>(names.begin(), names.end()));
  if (const auto given = arguments_.values.find(std::string(name.keras));
      given != arguments_.values.end()) {
    variants = given.value();
  }
  size_t chosen = 0;
  if (!IsChosen(name, variants.size(), &chosen)) return;
  index = find(variants[chosen]);
  Choose(variants[chosen] == "none" ? Json(nullptr) : variants[chosen]);
}

void ArgumentSetter::VisitPairs(ConfigName name, std::vector<int64_t>& values) {
  if (const Json& base = BaseOf(name); !base.is_null()) {
    values.clear();
    for (const Json& pair : base) {
      for (const Json& entry : pair) values.push_back(entry.get<int64_t>());
    }
  }
  size_t index = 0;
  if (!IsChosen(name, 2, &index)) return;
  Json pairs = Json::array();
  for (size_t i = 0; i + 1 < values.size(); i += 2) {
    values[i] = index == 0 ? 0 : 2;
    values[i + 1] = index == 0 ? 0 : 3;
    pairs.push_back(Json::array({values[i], values[i + 1]}));
  }
  Choose(pairs);
}

void ArgumentSetter::VisitExtents(ConfigName name,
                                  std::vector<int64_t>& values) {
  const auto parse = [](const Json& json) {
    std::vector<int64_t> extents;
    for (const Json& entry : json) {
      extents.push_back(entry.is_null() ? -1 : entry.get<int64_t>());
    }
    return extents;
  };
  if (const Json& base = BaseOf(name); !base.is_null()) values = parse(base);
  Json variants = Json::array(
      {Json::array({nullptr}), Json::array({1}), Json::array({2, nullptr})});
  if (const auto given = arguments_.values.find(std::string(name.keras));
      given != arguments_.values.end()) {
    variants = given.value();
  }
  size_t index = 0;
  if (!IsChosen(name, variants.size(), &index)) return;
  values = parse(variants[index]);
  Choose(variants[index]);
}

void ArgumentSetter::VisitNumbers(ConfigName name,
                                  std::vector<double>& values) {
  const auto parse = [](const Json& json) {
    return json.is_array() ? json.get<std::vector<double>>()
                           : std::vector<double>{json.get<double>()};
  };
  if (const Json& base = BaseOf(name); !base.is_null()) values = parse(base);
  const Json variants = {0, 0.5, 1e-7, {0.25, 0.5, 1}};
  size_t index = 0;
  if (!IsChosen(name, variants.size(), &index)) return;
  values = parse(variants[index]);
  Choose(variants[index]);
}

bool ArgumentSetter::IsPresent(ConfigName name, bool is_set) {
  if (name.keras.empty()) return is_set;
  names_.emplace_back(name.keras);
  has_none_ = true;
  if (name.keras == argument_) {
    if (variant_ > 0) return true;
    Choose(nullptr);
    return false;
  }
  return is_set || !BaseOf(name).is_null();
}

void ArgumentSetter::Refuse(ConfigName name, absl::string_view what) {
  if (refusal_.empty()) refusal_ = absl::StrCat(name.keras, " ", what);
}

}  // namespace muster
