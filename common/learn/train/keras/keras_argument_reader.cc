#include "common/learn/train/keras/keras_argument_reader.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initializer.h"
#include "common/core/base/check.h"
#include "common/core/base/did_you_mean.h"
#include "common/core/base/status_macros.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/constraints.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer_ptr.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/train/keras/keras_differences.h"
#include "common/learn/train/keras/keras_object.h"

namespace muster {
namespace {

// Arguments of Keras that Muster does not have, and the values of theirs that
// ask for what Muster does. Null always does.
struct NeutralArgument {
  absl::string_view name;
  absl::string_view value;  // JSON; empty: any.
};
constexpr NeutralArgument kNeutralArguments[] = {
    // Of every object.
    {"name", ""},
    {"dtype", ""},
    {"trainable", ""},
    {"autocast", "true"},
    // Of the first layer of a Sequential of Keras 2, whose input it is.
    {"batch_input_shape", ""},
    // Of one layer or another.
    {"antialias", "false"},
    {"attention_axes", "[1]"},
    {"axis", "-1"},
    {"axis", "[-1]"},
    {"count_include_pad", "false"},
    {"data_format", "\"channels_last\""},
    {"encoding", "\"utf-8\""},
    {"fill_mode", "\"constant\""},
    // How attention is computed, not what.
    {"flash_attention", ""},
    {"groups", "1"},
    {"has_input_vocabulary", ""},
    {"implementation", ""},
    {"key_shape", ""},
    {"multi_label", "false"},
    {"oov_method", "\"floormod\""},
    {"query_shape", ""},
    {"ragged", "false"},
    {"renorm", "false"},
    {"renorm_momentum", ""},
    {"rms_scaling", "false"},
    {"seed_generator", ""},
    {"softmax_robust_masking", "false"},
    {"sparse", "false"},
    {"time_major", "false"},
    {"unroll", ""},
    {"use_gate", "false"},
    {"value_shape", ""},
    {"vocabulary_dtype", "\"int64\""},
    {"vocabulary_size", ""},
};

bool IsNeutral(absl::string_view name, const KerasJson& value) {
  if (value.is_null()) return true;
  for (const NeutralArgument& argument : kNeutralArguments) {
    if (argument.name != name) continue;
    if (argument.value.empty()) return true;
    if (value ==
        KerasJson::parse(argument.value.begin(), argument.value.end())) {
      return true;
    }
  }
  return false;
}

// A number, or a list of one.
const KerasJson& Single(const KerasJson& value) {
  return value.is_array() && value.size() == 1 ? value.front() : value;
}

Initializer ScalingFrom(ConfigVisitor& visitor) {
  static constexpr absl::string_view kModes[] = {"fan_in", "fan_out",
                                                 "fan_avg"};
  static constexpr absl::string_view kDistributions[] = {
      "truncated_normal", "untruncated_normal", "uniform"};
  VarianceScalingOptions options;
  visitor.Visit("scale", options.scale);
  visitor.Visit("mode", options.mode, kModes);
  visitor.Visit("distribution", options.distribution, kDistributions);
  visitor.Visit("seed", options.seed);
  return VarianceScaling(options);
}

absl::StatusOr<Initializer> InitializerFrom(absl::string_view place,
                                            const KerasJson& json) {
  ASSIGN_OR_RETURN(const KerasObject object, ParseKerasObject(place, json));
  KerasArgumentReader reader(place, object.config);
  Initializer made;
  if (CanonicalKerasName(object.class_name) == "variancescaling") {
    made = ScalingFrom(reader);
  } else {
    const InitializerKind* const kind =
        FindKerasKind(kInitializerKinds, object.class_name);
    if (kind == nullptr) {
      return UnknownKerasName(place, "initializer", object.class_name,
                              NamesOfKinds(kInitializerKinds));
    }
    made = kind->make(reader);
  }
  RETURN_IF_ERROR(reader.Finish());
  return made;
}

absl::StatusOr<Regularizer> RegularizerFrom(absl::string_view place,
                                            const KerasJson& json) {
  ASSIGN_OR_RETURN(const KerasObject object, ParseKerasObject(place, json));
  const RegularizerKind* const kind =
      FindKerasKind(kRegularizerKinds, object.class_name);
  if (kind == nullptr) {
    return UnknownKerasName(place, "regularizer", object.class_name,
                            NamesOfKinds(kRegularizerKinds));
  }
  KerasArgumentReader reader(place, object.config);
  const Regularizer made = kind->make(reader);
  RETURN_IF_ERROR(reader.Finish());
  return made;
}

absl::StatusOr<Constraint> ConstraintFrom(absl::string_view place,
                                          const KerasJson& json) {
  ASSIGN_OR_RETURN(KerasObject object, ParseKerasObject(place, json));
  const ConstraintKind* const kind =
      FindKerasKind(kConstraintKinds, object.class_name);
  if (kind == nullptr) {
    return UnknownKerasName(place, "constraint", object.class_name,
                            NamesOfKinds(kConstraintKinds));
  }
  // Here, null is no default: a norm over all axes, of which Muster lists none.
  const auto axis = object.config.find("axis");
  if (axis != object.config.end() && axis->is_null()) {
    *axis = KerasJson::array();
  }
  KerasArgumentReader reader(place, object.config);
  Constraint made = kind->make(reader);
  RETURN_IF_ERROR(reader.Finish());
  const absl::Status status = CheckConstraint(made.definition());
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(place, ": ", status.message()));
  }
  return made;
}

// The name of a choice; of a function or a dtype policy that is written as an
// object, its name.
std::string ChoiceOf(const KerasJson& value) {
  if (value.is_string()) return value.get<std::string>();
  const KerasJson& config = FindMember(value, "config");
  if (config.is_string()) return config.get<std::string>();
  std::string unnamed = UnnamedActivationOf(value);
  if (!unnamed.empty()) return unnamed;
  const std::string class_name = TextMember(value, "class_name");
  // FloatDTypePolicy in files of Keras 3.2 and 3.3.
  return absl::EndsWith(class_name, "DTypePolicy") ? TextMember(config, "name")
                                                   : class_name;
}

}  // namespace

const KerasJson& KerasArgumentReader::Find(ConfigName name) {
  const absl::string_view key = name.keras.empty() ? name.job : name.keras;
  visited_.insert(std::string(key));
  const KerasJson& given = FindMember(config_, key);
  // Arrays that are no lists.
  const std::string class_name = TextMember(given, "class_name");
  if (class_name != "__tensor__" && class_name != "__numpy__") return given;
  return FindMember(FindMember(given, "config"), "value");
}

void KerasArgumentReader::RefuseType(ConfigName name,
                                     absl::string_view expected,
                                     const KerasJson& value) {
  Refuse(name,
         absl::StrCat("must be ", expected, ", got a ", value.type_name()));
}

void KerasArgumentReader::Visit(ConfigName name, bool& value) {
  const KerasJson& given = Find(name);
  if (given.is_null()) return;
  if (!given.is_boolean()) return RefuseType(name, "true or false", given);
  value = given.get<bool>();
}

void KerasArgumentReader::Visit(ConfigName name, int64_t& value) {
  const KerasJson& given = Single(Find(name));
  if (given.is_null()) return;
  if (!given.is_number_integer()) return RefuseType(name, "an integer", given);
  value = given.get<int64_t>();
}

void KerasArgumentReader::Visit(ConfigName name, double& value) {
  const KerasJson& given = Single(Find(name));
  if (given.is_null()) return;
  if (!given.is_number()) return RefuseType(name, "a number", given);
  value = given.get<double>();
}

void KerasArgumentReader::Visit(ConfigName name, uint64_t& seed) {
  const KerasJson& given = Find(name);
  if (given.is_null()) return;
  if (given.is_number_unsigned() || given.is_number_integer()) {
    seed = given.get<uint64_t>();
    return;
  }
  // A generator that the program made; its state is not in the config.
  if (!given.is_object()) RefuseType(name, "an integer", given);
}

void KerasArgumentReader::Visit(ConfigName name, std::string& value) {
  const KerasJson& given = Find(name);
  if (given.is_null()) return;
  if (!given.is_string()) return RefuseType(name, "a text", given);
  value = given.get<std::string>();
}

void KerasArgumentReader::Visit(ConfigName name, std::vector<int64_t>& values) {
  const KerasJson& given = Find(name);
  if (given.is_null()) return;
  std::vector<int64_t> read;
  for (const KerasJson& entry :
       given.is_array() ? given : KerasJson::array({given})) {
    if (!entry.is_number_integer()) {
      return RefuseType(name, "integers", given);
    }
    read.push_back(entry.get<int64_t>());
  }
  values = std::move(read);
}

void KerasArgumentReader::Visit(ConfigName name, std::vector<double>& values) {
  const KerasJson& given = Find(name);
  if (given.is_null()) return;
  std::vector<double> read;
  for (const KerasJson& entry :
       given.is_array() ? given : KerasJson::array({given})) {
    if (!entry.is_number()) return RefuseType(name, "numbers", given);
    read.push_back(entry.get<double>());
  }
  values = std::move(read);
}

void KerasArgumentReader::Visit(ConfigName name,
                                std::vector<std::string>& values) {
  const KerasJson& given = Find(name);
  if (given.is_null()) return;
  std::vector<std::string> read;
  for (const KerasJson& entry :
       given.is_array() ? given : KerasJson::array({given})) {
    if (!entry.is_string()) return RefuseType(name, "texts", given);
    read.push_back(entry.get<std::string>());
  }
  values = std::move(read);
}

void KerasArgumentReader::Visit(ConfigName name, Initializer& value) {
  const KerasJson& given = Find(name);
  if (given.is_null()) return;
  absl::StatusOr<Initializer> made =
      InitializerFrom(absl::StrCat(place_, ": ", name.keras), given);
  if (made.ok()) {
    value = *std::move(made);
  } else if (status_.ok()) {
    status_ = made.status();
  }
}

void KerasArgumentReader::Visit(ConfigName name, Regularizer& value) {
  const KerasJson& given = Find(name);
  if (given.is_null()) return;
  absl::StatusOr<Regularizer> made =
      RegularizerFrom(absl::StrCat(place_, ": ", name.keras), given);
  if (made.ok()) {
    value = *std::move(made);
  } else if (status_.ok()) {
    status_ = made.status();
  }
}

void KerasArgumentReader::Visit(ConfigName name, Constraint& value) {
  const KerasJson& given = Find(name);
  if (given.is_null()) return;
  absl::StatusOr<Constraint> made =
      ConstraintFrom(absl::StrCat(place_, ": ", name.keras), given);
  if (made.ok()) {
    value = *std::move(made);
  } else if (status_.ok()) {
    status_ = made.status();
  }
}

void KerasArgumentReader::Visit(ConfigName name, LayerPtr& layer) {
  const KerasJson& given = Find(name);
  if (given.is_null()) return;
  MUSTER_CHECK(read_layer_ != nullptr);
  absl::StatusOr<LayerPtr> made = read_layer_(given);
  if (made.ok()) {
    layer = *std::move(made);
  } else if (status_.ok()) {
    status_ = made.status();
  }
}

void KerasArgumentReader::VisitLayers(ConfigName name,
                                      std::vector<LayerPtr>& layers) {
  const KerasJson& given = Find(name);
  if (given.is_null()) return;
  if (!given.is_array()) return RefuseType(name, "a list of layers", given);
  MUSTER_CHECK(read_layer_ != nullptr);
  layers.clear();
  for (const KerasJson& entry : given) {
    absl::StatusOr<LayerPtr> made = read_layer_(entry);
    if (!made.ok()) {
      if (status_.ok()) status_ = made.status();
      return;
    }
    layers.push_back(*std::move(made));
  }
}

void KerasArgumentReader::VisitChoice(
    ConfigName name, int& index, absl::Span<const absl::string_view> names) {
  const KerasJson& given = Find(name);
  if (given.is_null()) {
    if (!config_.contains(std::string(name.keras))) return;
    // Keras' None for an activation is none, whatever the layer's default.
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == "none" || names[i] == "linear") {
        index = static_cast<int>(i);
      }
    }
    return;
  }
  const std::string chosen = ChoiceOf(given);
  for (size_t i = 0; i < names.size(); ++i) {
    if (CanonicalKerasName(names[i]) != CanonicalKerasName(chosen)) continue;
    index = static_cast<int>(i);
    return;
  }
  Refuse(name, absl::StrCat("must be one of ", absl::StrJoin(names, ", "),
                            ", got ", chosen.empty() ? "none" : chosen,
                            DidYouMean(chosen, names)));
}

void KerasArgumentReader::VisitPairs(ConfigName name,
                                     std::vector<int64_t>& values) {
  const KerasJson& given = Find(name);
  if (given.is_null()) return;
  std::vector<int64_t> read;
  const auto entries_of = [](const KerasJson& json) {
    return json.is_array() ? json : KerasJson::array({json});
  };
  for (const KerasJson& pair : entries_of(given)) {
    for (const KerasJson& entry : entries_of(pair)) {
      if (!entry.is_number_integer()) {
        return RefuseType(name, "integers", given);
      }
      read.push_back(entry.get<int64_t>());
    }
  }
  values = std::move(read);
}

void KerasArgumentReader::VisitExtents(ConfigName name,
                                       std::vector<int64_t>& values) {
  const KerasJson& given = Find(name);
  if (given.is_null()) return;
  std::vector<int64_t> read;
  for (const KerasJson& entry :
       given.is_array() ? given : KerasJson::array({given})) {
    if (!entry.is_null() && !entry.is_number_integer()) {
      return RefuseType(name, "integers or null", given);
    }
    read.push_back(entry.is_null() ? -1 : entry.get<int64_t>());
  }
  values = std::move(read);
}

bool KerasArgumentReader::IsPresent(ConfigName name, bool) {
  return !Find(name).is_null();
}

void KerasArgumentReader::Refuse(ConfigName name, absl::string_view what) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(
      absl::StrCat(place_, ": ", name.keras, " ", what));
}

absl::Status KerasArgumentReader::Finish() {
  RETURN_IF_ERROR(status_);
  for (const auto& [name, value] : config_.items()) {
    if (visited_.contains(name) || IsNeutral(name, value)) continue;
    const std::vector<absl::string_view> known(visited_.begin(),
                                               visited_.end());
    return absl::InvalidArgumentError(absl::StrCat(
        place_, ": Muster has no argument ", name, DidYouMean(name, known),
        "; it is supported at Keras' default only"));
  }
  return absl::OkStatus();
}

}  // namespace muster
