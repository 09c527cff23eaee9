#include "common/learn/train/keras/keras_layer_config.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initializer.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/train/keras/keras_differences.h"
#include "google/protobuf/repeated_field.h"
#include "nlohmann/json.hpp"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;
using Scaling = proto::Initializer::VarianceScaling;

Json Object(const char* module, const std::string& class_name, Json config) {
  return {{"module", module},
          {"class_name", class_name},
          {"config", std::move(config)},
          {"registered_name", nullptr}};
}

// Keras refuses numbers that 64 bits with a sign cannot hold.
Json SeedToJson(uint64_t seed) {
  return seed == 0 ? Json(nullptr) : Json(static_cast<int64_t>(seed));
}

// The settings of VarianceScaling that have a class of their own in Keras.
struct NamedScaling {
  const char* class_name;
  double scale;
  Scaling::Mode mode;
  Scaling::Distribution distribution;
};
constexpr NamedScaling kNamedScalings[] = {
    {"GlorotUniform", 1, Scaling::FAN_AVG, Scaling::UNIFORM},
    {"GlorotNormal", 1, Scaling::FAN_AVG, Scaling::TRUNCATED_NORMAL},
    {"HeUniform", 2, Scaling::FAN_IN, Scaling::UNIFORM},
    {"HeNormal", 2, Scaling::FAN_IN, Scaling::TRUNCATED_NORMAL},
    {"LecunUniform", 1, Scaling::FAN_IN, Scaling::UNIFORM},
    {"LecunNormal", 1, Scaling::FAN_IN, Scaling::TRUNCATED_NORMAL},
};

Json ScalingToJson(const Scaling& scaling, const Json& seed) {
  static constexpr char kModule[] = "keras.initializers";
  for (const NamedScaling& named : kNamedScalings) {
    if (named.scale == scaling.scale() && named.mode == scaling.mode() &&
        named.distribution == scaling.distribution()) {
      return Object(kModule, named.class_name, {{"seed", seed}});
    }
  }
  // In the order of the enums.
  static constexpr const char* kModes[] = {"fan_in", "fan_out", "fan_avg"};
  static constexpr const char* kDistributions[] = {
      "truncated_normal", "untruncated_normal", "uniform"};
  return Object(kModule, "VarianceScaling",
                {{"seed", seed},
                 {"scale", scaling.scale()},
                 {"mode", kModes[scaling.mode()]},
                 {"distribution", kDistributions[scaling.distribution()]}});
}

Json ToJson(const proto::Initializer& initializer) {
  static constexpr char kModule[] = "keras.initializers";
  const Json seed = SeedToJson(initializer.seed());
  switch (initializer.kind_case()) {
    case proto::Initializer::kConstant: {
      const double value = initializer.constant().value();
      if (value == 0) return Object(kModule, "Zeros", Json::object());
      if (value == 1) return Object(kModule, "Ones", Json::object());
      return Object(kModule, "Constant", {{"value", value}});
    }
    case proto::Initializer::kUniform:
      return Object(kModule, "RandomUniform",
                    {{"seed", seed},
                     {"minval", initializer.uniform().minimum()},
                     {"maxval", initializer.uniform().maximum()}});
    case proto::Initializer::kNormal:
      return Object(
          kModule,
          initializer.normal().truncated() ? "TruncatedNormal" : "RandomNormal",
          {{"seed", seed},
           {"mean", initializer.normal().mean()},
           {"stddev", initializer.normal().standard_deviation()}});
    case proto::Initializer::kVarianceScaling:
      return ScalingToJson(initializer.variance_scaling(), seed);
    case proto::Initializer::kOrthogonal:
      return Object(
          kModule, "Orthogonal",
          {{"seed", seed}, {"gain", initializer.orthogonal().gain()}});
    // No layer has these as options.
    case proto::Initializer::kConcatenation:
    case proto::Initializer::kValue:
    case proto::Initializer::KIND_NOT_SET:
      break;
  }
  return nullptr;
}

Json ToJson(const Regularizer& regularizer) {
  static constexpr char kModule[] = "keras.regularizers";
  if (!regularizer.factors().has_value()) return nullptr;
  const auto [l1, l2] = *regularizer.factors();
  if (l1 == 0) return Object(kModule, "L2", {{"l2", l2}});
  if (l2 == 0) return Object(kModule, "L1", {{"l1", l1}});
  return Object(kModule, "L1L2", {{"l1", l1}, {"l2", l2}});
}

// Keras' axis: one number, a list, or None.
Json AxisToJson(const google::protobuf::RepeatedField<int64_t>& axis) {
  if (axis.empty()) return nullptr;
  if (axis.size() == 1) return axis[0];
  return std::vector<int64_t>(axis.begin(), axis.end());
}

Json ToJson(const proto::Constraint& constraint) {
  static constexpr char kModule[] = "keras.constraints";
  switch (constraint.kind_case()) {
    case proto::Constraint::kMaxNorm:
      return Object(kModule, "MaxNorm",
                    {{"max_value", constraint.max_norm().max_value()},
                     {"axis", AxisToJson(constraint.max_norm().axis())}});
    case proto::Constraint::kNonNeg:
      return Object(kModule, "NonNeg", Json::object());
    case proto::Constraint::kUnitNorm:
      return Object(kModule, "UnitNorm",
                    {{"axis", AxisToJson(constraint.unit_norm().axis())}});
    case proto::Constraint::kMinMaxNorm: {
      const proto::Constraint::MinMaxNorm& norm = constraint.min_max_norm();
      return Object(kModule, "MinMaxNorm",
                    {{"min_value", norm.min_value()},
                     {"max_value", norm.max_value()},
                     {"rate", norm.rate()},
                     {"axis", AxisToJson(norm.axis())}});
    }
    // No layer of Keras has them as options.
    case proto::Constraint::kProgram:
    case proto::Constraint::KIND_NOT_SET:
      break;
  }
  return nullptr;
}

// Adds each hyperparameter to an object.
class KerasConfigWriter : public ConfigVisitor {
 public:
  // `config` is borrowed. `write_layer` writes layers inside.
  explicit KerasConfigWriter(Json* config,
                             KerasLayerWriter write_layer = nullptr)
      : config_(*config), write_layer_(std::move(write_layer)) {}

  using ConfigVisitor::Visit;
  void Visit(ConfigName name, bool& value) override { Add(name, value); }
  void Visit(ConfigName name, int64_t& value) override { Add(name, value); }
  void Visit(ConfigName name, double& value) override { Add(name, value); }
  void Visit(ConfigName name, uint64_t& seed) override {
    Add(name, SeedToJson(seed));
  }
  void Visit(ConfigName name, std::string& value) override { Add(name, value); }
  void Visit(ConfigName name, std::vector<int64_t>& values) override {
    Add(name, values.empty() ? Json(nullptr) : Json(values));
  }
  void Visit(ConfigName name, std::vector<double>& values) override {
    Add(name, values.empty() ? Json(nullptr) : Json(values));
  }
  void Visit(ConfigName name, std::vector<std::string>& values) override {
    Add(name, values.empty() ? Json(nullptr) : Json(values));
  }
  void Visit(ConfigName name, Initializer& value) override {
    Add(name, ToJson(value.definition()));
  }
  void Visit(ConfigName name, Regularizer& value) override {
    Add(name, ToJson(value));
  }
  void Visit(ConfigName name, Constraint& value) override {
    Add(name, ToJson(value.definition()));
  }
  void Visit(ConfigName name, LayerPtr& layer) override {
    Add(name, LayerToJson(layer));
  }
  void VisitLayers(ConfigName name, std::vector<LayerPtr>& layers) override {
    Json list = Json::array();
    for (const LayerPtr& layer : layers) list.push_back(LayerToJson(layer));
    Add(name, std::move(list));
  }
  void VisitChoice(ConfigName name, int& index,
                   absl::Span<const absl::string_view> names) override {
    if (std::optional<Json> unnamed = UnnamedActivationJson(names[index])) {
      return Add(name, *std::move(unnamed));
    }
    const bool is_none = names[index] == "none";
    Add(name, is_none ? Json(nullptr) : Json(std::string(names[index])));
  }
  void VisitPairs(ConfigName name, std::vector<int64_t>& values) override {
    Json pairs = Json::array();
    for (size_t i = 0; i + 1 < values.size(); i += 2) {
      pairs.push_back(Json::array({values[i], values[i + 1]}));
    }
    Add(name, std::move(pairs));
  }
  void VisitExtents(ConfigName name, std::vector<int64_t>& values) override {
    Json extents = Json::array();
    for (const int64_t value : values) {
      extents.push_back(value < 0 ? Json(nullptr) : Json(value));
    }
    Add(name, std::move(extents));
  }
  void VisitNumbers(ConfigName name, std::vector<double>& values) override {
    Add(name, values.size() == 1 ? Json(values.front()) : Json(values));
  }
  bool IsPresent(ConfigName name, bool is_set) override {
    if (!is_set) Add(name, nullptr);
    return is_set;
  }
  void Refuse(ConfigName, absl::string_view) override {}

 private:
  Json LayerToJson(const LayerPtr& layer) const {
    if (layer == nullptr) return nullptr;
    return write_layer_ ? write_layer_(*layer) : KerasLayerConfig(*layer);
  }
  void Add(ConfigName name, Json value) {
    if (!name.keras.empty()) {
      config_[std::string(name.keras)] = std::move(value);
    }
  }

  Json& config_;
  const KerasLayerWriter write_layer_;
};

// Adds those that are no part of the config.
class CallArgumentsWriter : public KerasConfigWriter {
 public:
  // `arguments` are borrowed.
  explicit CallArgumentsWriter(Json* arguments)
      : KerasConfigWriter(&config_), arguments_(*arguments) {}

  using KerasConfigWriter::Visit;
  void Visit(ConfigName name, bool& value) override {
    if (name.keras.empty() && value) arguments_[std::string(name.job)] = true;
  }

 private:
  Json config_;
  Json& arguments_;
};

}  // namespace

Json KerasLayerConfig(Layer& layer, const KerasLayerWriter& write_inner) {
  Json config = {
      {"name", layer.name()},
      {"trainable", layer.trainable()},
      {"dtype", Object("keras", "DTypePolicy",
                       {{"name", DTypePolicyName(layer.dtype_policy())}})}};
  KerasConfigWriter writer(&config, write_inner);
  layer.VisitConfig(writer);
  if (Regularizer regularizer = layer.activity_regularizer()) {
    writer.Visit("activity_regularizer", regularizer);
  }
  // The classes of Keras that have no such argument.
  if (layer.kind() == "Discretization" ||
      absl::StartsWith(layer.kind(), "SpatialDropout")) {
    config.erase("trainable");
  }
  return Object(layer.kind() == kProgramClass ? kProgramModule : "keras.layers",
                layer.kind(), std::move(config));
}

Json KerasConfigOf(const std::function<void(ConfigVisitor&)>& visit) {
  Json config = Json::object();
  KerasConfigWriter writer(&config);
  visit(writer);
  return config;
}

Json KerasCallArguments(Layer& layer) {
  Json arguments = Json::object();
  CallArgumentsWriter writer(&arguments);
  layer.VisitConfig(writer);
  return arguments;
}

}  // namespace muster
