#include "common/learn/train/keras/keras_compile_config.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/compute/optimizers/keras_config.h"
#include "common/compute/optimizers/optimizer_kind.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/status_macros.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metric.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/nn/programs/program_loss.h"
#include "common/learn/nn/structure.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/keras/keras_argument_reader.h"
#include "common/learn/train/keras/keras_layer_config.h"
#include "common/learn/train/keras/keras_names.h"
#include "common/learn/train/keras/keras_node.h"
#include "common/learn/train/keras/keras_object.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

// The outputs of a model: their names, and how they are nested.
struct ModelOutputs {
  std::vector<std::string> names;
  Structure structure;
};

absl::Status Misfit(absl::string_view what, absl::string_view problem,
                    const ModelOutputs& outputs) {
  return absl::InvalidArgumentError(absl::StrCat(
      "compile_config, ", what, ": ", problem, "; the model's outputs are ",
      absl::StrJoin(outputs.names, ", ")));
}

bool IsNested(const Structure& structure) {
  for (const Structure& child : structure.children()) {
    if (!child.is_leaf()) return true;
  }
  return false;
}

// Appends what `json` has for each leaf. Returns false if it is not nested like
// `structure`. An entry may be absent from a dictionary.
bool Divide(const Structure& structure, const KerasJson& json,
            std::vector<KerasJson>* divided) {
  if (structure.is_leaf()) {
    divided->push_back(json);
    return true;
  }
  const size_t count = structure.children().size();
  if (structure.is_dictionary() ? !json.is_object()
                                : !json.is_array() || json.size() != count) {
    if (!json.is_null()) return false;
  }
  if (json.is_object()) {
    const std::vector<std::string>& keys = structure.keys();
    for (const auto& [key, value] : json.items()) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) return false;
    }
  }
  for (size_t i = 0; i < count; ++i) {
    const KerasJson& inner =
        json.is_array()
            ? json[i]
            : FindMember(json,
                         structure.is_dictionary() ? structure.keys()[i] : "");
    if (!Divide(structure.children()[i], inner, divided)) return false;
  }
  return true;
}

// Divides what is said for all outputs: nested as they are, a dictionary by
// their names, or a list in their order. What is said once is for the only
// output; null if nothing is said for an output.
absl::StatusOr<std::vector<KerasJson>> ForEachOutput(
    absl::string_view what, const KerasJson& json,
    const ModelOutputs& outputs) {
  const std::vector<std::string>& names = outputs.names;
  std::vector<KerasJson> divided(names.size());
  if (json.is_null()) return divided;
  const bool is_object_of_keras = json.contains("class_name");
  if (IsNested(outputs.structure) && !is_object_of_keras) {
    std::vector<KerasJson> nested;
    if (Divide(outputs.structure, json, &nested)) return nested;
  }
  if (json.is_object() && !is_object_of_keras) {
    for (const auto& [name, value] : json.items()) {
      const auto found = std::find(names.begin(), names.end(), name);
      if (found == names.end()) {
        return Misfit(what, absl::StrCat("there is no output ", name), outputs);
      }
      divided[found - names.begin()] = value;
    }
    return divided;
  }
  if (names.size() == 1) return std::vector<KerasJson>{json};
  if (!json.is_array() || json.size() != names.size()) {
    return Misfit(what, "expected one entry for each output", outputs);
  }
  std::copy(json.begin(), json.end(), divided.begin());
  return divided;
}

// A list of one is what it lists.
const KerasJson& Unlisted(const KerasJson& json) {
  return json.is_array() && json.size() == 1 ? json.front() : json;
}

absl::StatusOr<Loss> LossFrom(absl::string_view place, const KerasJson& json) {
  if (json.is_null()) return Loss();
  if (Unlisted(json).is_string()) {
    return LossNamed(place, Unlisted(json).get<std::string>());
  }
  ASSIGN_OR_RETURN(const KerasObject object,
                   ParseKerasObject(place, Unlisted(json)));
  KerasArgumentReader reader(place, object.config);
  Loss loss;
  if (object.class_name == kProgramLossClass) {
    loss = MakeConfigured<Loss, ProgramLossOptions, ProgramLoss>(reader);
  } else if (const LossKind* const kind =
                 FindKerasKind(kLossKinds, object.class_name);
             kind != nullptr) {
    loss = kind->make(reader);
  } else {
    return UnknownKerasName(place, "loss", object.class_name,
                            NamesOfKinds(kLossKinds));
  }
  RETURN_IF_ERROR(reader.Finish());
  return loss;
}

// A metric that is given as a text is called by it in logs; others have a name.
absl::StatusOr<Metric> MetricFrom(absl::string_view place,
                                  const KerasJson& json) {
  if (json.is_string()) return MetricNamed(place, json.get<std::string>());
  ASSIGN_OR_RETURN(KerasObject object, ParseKerasObject(place, json));
  std::string name = TextMember(object.config, "name");
  if (name.empty()) name = ToSnakeCase(object.class_name);
  KerasArgumentReader reader(place, object.config);
  std::optional<Metric> metric;
  // The class of this name compares labels and predictions as they are; the
  // name alone is the accuracy of the kind of labels.
  const bool is_exact = object.class_name == "Accuracy";
  if (object.class_name == kProgramMetricClass) {
    metric =
        MakeConfigured<Metric, ProgramMetricOptions, ProgramMetric>(reader);
  } else if (const MetricKind* const kind =
                 FindKerasKind(kMetricKinds, object.class_name);
             kind != nullptr && !is_exact) {
    metric = kind->make(reader);
  } else if (const LossKind* const as_loss =
                 FindKerasKind(kLossKinds, object.class_name);
             as_loss != nullptr) {
    metric = Metric(as_loss->make(reader));
  } else {
    return UnknownKerasName(place, "metric", object.class_name,
                            NamesOfKinds(kMetricKinds));
  }
  RETURN_IF_ERROR(reader.Finish());
  return metric->Named(name);
}

// For each output a list of metrics.
absl::StatusOr<std::vector<std::vector<Metric>>> MetricsFrom(
    absl::string_view what, const KerasJson& json,
    const ModelOutputs& outputs) {
  ASSIGN_OR_RETURN(std::vector<KerasJson> divided,
                   ForEachOutput(what, json, outputs));
  std::vector<std::vector<Metric>> metrics(outputs.names.size());
  for (size_t i = 0; i < metrics.size(); ++i) {
    if (divided[i].is_null()) continue;
    // Keras writes the metrics of an only output as a list in a list, too.
    if (metrics.size() == 1 && Unlisted(divided[i]).is_array()) {
      divided[i] = KerasJson(Unlisted(divided[i]));
    }
    if (!divided[i].is_array()) divided[i] = KerasJson::array({divided[i]});
    for (const KerasJson& entry : divided[i]) {
      ASSIGN_OR_RETURN(Metric metric,
                       MetricFrom(absl::StrCat("compile_config, ", what, " of ",
                                               outputs.names[i]),
                                  entry));
      metrics[i].push_back(std::move(metric));
    }
  }
  return metrics;
}

absl::StatusOr<std::vector<double>> LossWeightsFrom(
    const KerasJson& json, const ModelOutputs& outputs) {
  if (json.is_null()) return std::vector<double>();
  ASSIGN_OR_RETURN(const std::vector<KerasJson> divided,
                   ForEachOutput("loss_weights", json, outputs));
  std::vector<double> weights;
  for (const KerasJson& entry : divided) {
    const KerasJson& weight = Unlisted(entry);
    if (!weight.is_number() && !weight.is_null()) {
      return Misfit("loss_weights", "expected numbers", outputs);
    }
    weights.push_back(weight.is_null() ? 1 : weight.get<double>());
  }
  return weights;
}

absl::StatusOr<proto::Optimizer> OptimizerFrom(const KerasJson& json) {
  if (json.is_null()) return proto::Optimizer();
  KerasJson object = json;
  if (json.is_string()) {
    object = {{"class_name", json}, {"config", KerasJson::object()}};
    for (const OptimizerKind* const kind : kOptimizerKinds) {
      if (CanonicalKerasName(kind->keras_class) ==
          CanonicalKerasName(json.get<std::string>())) {
        object["class_name"] = std::string(kind->keras_class);
      }
    }
  }
  absl::StatusOr<proto::Optimizer> optimizer =
      OptimizerFromKerasConfig(object.dump());
  if (optimizer.ok()) return optimizer;
  return absl::InvalidArgumentError(absl::StrCat("compile_config, optimizer: ",
                                                 optimizer.status().message()));
}

// The object for a class of Keras with these options.
KerasJson ObjectOf(const char* module, absl::string_view class_name,
                   const std::string& name,
                   const std::function<void(ConfigVisitor&)>& visit_options) {
  KerasJson config = KerasConfigOf(visit_options);
  config["name"] = name;
  return {{"module", module},
          {"class_name", std::string(class_name)},
          {"config", std::move(config)},
          {"registered_name", nullptr}};
}

absl::Status NoForm(absl::string_view what, absl::string_view name) {
  return absl::UnimplementedError(
      absl::StrCat(what, " ", name, " is the program's own; Keras has none"));
}

absl::StatusOr<KerasJson> ToJson(const Loss& loss) {
  if (!loss) return KerasJson();
  // Known by this name only.
  if (loss.name() == "crossentropy") return KerasJson(loss.name());
  if (loss.name() == kProgramName) {
    return ObjectOf(kProgramModule, kProgramLossClass, loss.name(),
                    loss.visit_options());
  }
  const LossKind* const kind = FindKerasKind(kLossKinds, loss.name());
  if (kind == nullptr || loss.visit_options() == nullptr) {
    return NoForm("loss", loss.name());
  }
  return ObjectOf("keras.losses", kind->keras_class, loss.name(),
                  loss.visit_options());
}

absl::StatusOr<KerasJson> ToJson(const std::vector<Metric>& metrics) {
  KerasJson list = KerasJson::array();
  for (const Metric& metric : metrics) {
    if (metric.kind() == "accuracy") {
      list.push_back(metric.kind());
      continue;
    }
    if (metric.kind() == kProgramName) {
      list.push_back(ObjectOf(kProgramModule, kProgramMetricClass,
                              metric.name(), metric.visit_options()));
      continue;
    }
    const MetricKind* const kind = FindKerasKind(kMetricKinds, metric.kind());
    const LossKind* const as_loss = FindKerasKind(kLossKinds, metric.kind());
    if (metric.visit_options() == nullptr ||
        (kind == nullptr && as_loss == nullptr)) {
      return NoForm("metric", metric.name());
    }
    KerasJson json =
        ObjectOf("keras.metrics",
                 kind != nullptr ? kind->keras_class : as_loss->keras_class,
                 metric.name(), metric.visit_options());
    // Metrics are means; the losses that they are made of have a choice.
    KerasJson& config = json["config"];
    config.erase("reduction");
    if (metric.kind() == "binary_crossentropy" && config.contains("axis")) {
      if (config["axis"] != -1) {
        return absl::UnimplementedError(absl::StrCat(
            "metric ", metric.name(), ": axis is ", config["axis"].dump(),
            ", and Keras' metric has no axis"));
      }
      config.erase("axis");
    }
    list.push_back(std::move(json));
  }
  return list;
}

// Null if there are none.
absl::StatusOr<KerasJson> ToJson(
    const std::vector<Metric>& metrics,
    const std::vector<std::vector<Metric>>& of_outputs) {
  if (of_outputs.empty()) {
    if (metrics.empty()) return KerasJson();
    return ToJson(metrics);
  }
  KerasJson lists = KerasJson::array();
  for (const std::vector<Metric>& of_output : of_outputs) {
    ASSIGN_OR_RETURN(KerasJson list, ToJson(of_output));
    lists.push_back(std::move(list));
  }
  return lists;
}

absl::StatusOr<KerasJson> LossesToJson(const CompileOptions& options) {
  if (options.losses.empty()) return ToJson(options.loss);
  KerasJson list = KerasJson::array();
  for (const Loss& loss : options.losses) {
    ASSIGN_OR_RETURN(KerasJson json, ToJson(loss));
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace

Structure OutputStructureOf(const Layer& layers) {
  const auto* const functional = dynamic_cast<const FunctionalLayer*>(&layers);
  return functional != nullptr ? functional->output_structure()
                               : Structure::Flat(layers.output_names().size());
}

absl::StatusOr<std::optional<CompileOptions>> CompileOptionsFromKeras(
    const KerasJson& model, const Layer& layers) {
  const KerasJson& config = FindMember(model, "compile_config");
  if (!config.is_object() || config.empty()) return std::nullopt;
  const ModelOutputs outputs = {layers.output_names(),
                                OutputStructureOf(layers)};
  CompileOptions options;
  ASSIGN_OR_RETURN(options.optimizer,
                   OptimizerFrom(FindMember(config, "optimizer")));
  ASSIGN_OR_RETURN(const std::vector<KerasJson> losses,
                   ForEachOutput("loss", FindMember(config, "loss"), outputs));
  for (size_t i = 0; i < losses.size(); ++i) {
    ASSIGN_OR_RETURN(
        Loss loss,
        LossFrom(absl::StrCat("compile_config, loss of ", outputs.names[i]),
                 losses[i]));
    options.losses.push_back(std::move(loss));
  }
  ASSIGN_OR_RETURN(
      options.loss_weights,
      LossWeightsFrom(FindMember(config, "loss_weights"), outputs));
  ASSIGN_OR_RETURN(
      options.output_metrics,
      MetricsFrom("metrics", FindMember(config, "metrics"), outputs));
  ASSIGN_OR_RETURN(
      options.weighted_output_metrics,
      MetricsFrom("weighted_metrics", FindMember(config, "weighted_metrics"),
                  outputs));
  if (outputs.names.size() == 1) {
    options.loss = std::exchange(options.losses, {}).front();
    options.metrics = std::exchange(options.output_metrics, {}).front();
    options.weighted_metrics =
        std::exchange(options.weighted_output_metrics, {}).front();
  }
  const KerasJson& steps = FindMember(config, "steps_per_execution");
  if (steps.is_number_unsigned()) {
    options.steps_per_execution = steps.get<int>();
  }
  return options;
}

absl::StatusOr<KerasJson> KerasCompileConfig(const CompileOptions& options,
                                             const Structure& outputs) {
  if (options.train_step != nullptr || options.test_step != nullptr) {
    return NoForm("the step", "train_step");
  }
  KerasJson config;
  if (options.optimizer.has_rule()) {
    ASSIGN_OR_RETURN(const std::string optimizer,
                     KerasConfigOf(options.optimizer.message()));
    config["optimizer"] = KerasJson::parse(optimizer);
  } else {
    config["optimizer"] = nullptr;
  }
  ASSIGN_OR_RETURN(config["loss"], LossesToJson(options));
  config["loss_weights"] = nullptr;
  if (!options.loss_weights.empty()) {
    config["loss_weights"] = options.loss_weights;
  }
  ASSIGN_OR_RETURN(config["metrics"],
                   ToJson(options.metrics, options.output_metrics));
  ASSIGN_OR_RETURN(
      config["weighted_metrics"],
      ToJson(options.weighted_metrics, options.weighted_output_metrics));
  // Keras expects the settings of outputs nested as the outputs are.
  if (IsNested(outputs)) {
    for (const char* const what :
         {"loss", "loss_weights", "metrics", "weighted_metrics"}) {
      KerasJson& each = config[what];
      if (each.is_array() && each.size() == outputs.leaf_count()) {
        each = NestedJson(outputs, each);
      }
    }
  }
  config["run_eagerly"] = false;
  config["steps_per_execution"] = options.steps_per_execution;
  config["jit_compile"] = false;
  return config;
}

}  // namespace muster
