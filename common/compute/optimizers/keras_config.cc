#include "common/compute/optimizers/keras_config.h"

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/compute/optimizers/complete_optimizer.h"
#include "common/compute/optimizers/optimizer_kind.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/optimizers/program_rule.h"
#include "common/compute/optimizers/program_schedule.h"
#include "common/compute/optimizers/schedule_kind.h"
#include "common/compute/optimizers/set_field.h"
#include "common/core/base/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "nlohmann/json.hpp"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
// Preserves the order of insertion, which is Keras' order.
using Json = nlohmann::ordered_json;

constexpr char kLearningRate[] = "learning_rate";
constexpr char kWeightDecay[] = "weight_decay";
constexpr char kProgramModule[] = "muster.programs";
// Fields that are null in Keras' config and 0 in the schema if the option is
// off.
constexpr const char* kNullIfZero[] = {kWeightDecay,
                                       "clipnorm",
                                       "global_clipnorm",
                                       "clipvalue",
                                       "warmup_target",
                                       "adam_weight_decay",
                                       "rms_rate",
                                       "ema_overwrite_frequency",
                                       "gradient_accumulation_steps"};

bool IsNullIfZero(absl::string_view name) {
  for (const char* const known : kNullIfZero) {
    if (name == known) return true;
  }
  return false;
}

Json Wrapped(absl::string_view module, absl::string_view class_name,
             Json config) {
  return {{"module", std::string(module)},
          {"class_name", std::string(class_name)},
          {"config", std::move(config)},
          {"registered_name", nullptr}};
}

Json ValueOf(const Message& message, const FieldDescriptor* field) {
  const auto* const reflection = message.GetReflection();
  if (field->is_repeated()) {
    Json values = Json::array();
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
        values.push_back(reflection->GetRepeatedInt64(message, field, i));
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
        values.push_back(reflection->GetRepeatedString(message, field, i));
      } else {
        values.push_back(reflection->GetRepeatedDouble(message, field, i));
      }
    }
    return values;
  }
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->GetBool(message, field);
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection->GetString(message, field);
    case FieldDescriptor::CPPTYPE_INT64: {
      const int64_t value = reflection->GetInt64(message, field);
      if (value == 0 && IsNullIfZero(field->name())) return nullptr;
      return value;
    }
    default: {
      const double value = reflection->GetDouble(message, field);
      if (value == 0 && IsNullIfZero(field->name())) return nullptr;
      return value;
    }
  }
}

bool IsHyperparameter(const FieldDescriptor& field) {
  return field.name() != kLearningRate && field.name() != kWeightDecay;
}

Json ScheduleConfig(const proto::LearningRateSchedule& schedule) {
  const Message& arguments =
      schedule.GetReflection()->GetMessage(schedule, SetFieldOfOneof(schedule));
  Json config = Json::object();
  for (int i = 0; i < arguments.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* const field = arguments.GetDescriptor()->field(i);
    config[field->name()] = ValueOf(arguments, field);
  }
  return config;
}

absl::Status WrongType(absl::string_view name, absl::string_view expected,
                       const Json& value) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", value.dump(), "; expected ", expected));
}

// Appends to a repeated field.
absl::Status AddValue(const Json& value, const FieldDescriptor* field,
                      Message* message) {
  const auto* const reflection = message->GetReflection();
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
    if (!value.is_number_integer()) {
      return WrongType(field->name(), "integers", value);
    }
    reflection->AddInt64(message, field, value.get<int64_t>());
    return absl::OkStatus();
  }
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    if (!value.is_string()) return WrongType(field->name(), "texts", value);
    reflection->AddString(message, field, value.get<std::string>());
    return absl::OkStatus();
  }
  if (!value.is_number()) return WrongType(field->name(), "numbers", value);
  reflection->AddDouble(message, field, value.get<double>());
  return absl::OkStatus();
}

absl::Status SetValue(const Json& value, const FieldDescriptor* field,
                      Message* message) {
  const auto* const reflection = message->GetReflection();
  if (field->is_repeated()) {
    if (!value.is_array()) return WrongType(field->name(), "a list", value);
    for (const Json& entry : value) {
      RETURN_IF_ERROR(AddValue(entry, field, message));
    }
    return absl::OkStatus();
  }
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      if (!value.is_string()) return WrongType(field->name(), "a text", value);
      reflection->SetString(message, field, value.get<std::string>());
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_BOOL:
      if (!value.is_boolean()) {
        return WrongType(field->name(), "true or false", value);
      }
      reflection->SetBool(message, field, value.get<bool>());
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_INT64:
      if (value.is_null() && IsNullIfZero(field->name())) {
        reflection->SetInt64(message, field, 0);
        return absl::OkStatus();
      }
      if (!value.is_number_integer()) {
        return WrongType(field->name(), "an integer", value);
      }
      reflection->SetInt64(message, field, value.get<int64_t>());
      return absl::OkStatus();
    default:
      if (value.is_null() && IsNullIfZero(field->name())) {
        reflection->SetDouble(message, field, 0);
        return absl::OkStatus();
      }
      if (!value.is_number()) {
        return WrongType(field->name(), "a number", value);
      }
      reflection->SetDouble(message, field, value.get<double>());
      return absl::OkStatus();
  }
}

// Returns true if `name` is an argument of all Keras optimizers that Muster
// does not support. Returns an error if the argument is in use.
absl::StatusOr<bool> IsIgnored(absl::string_view name, const Json& value) {
  if (name == "name") return true;
  if (name != "loss_scale_factor") return false;
  if (value.is_null() || value == false) return true;
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", value.dump(), "; Muster does not support it"));
}

struct ClassAndConfig {
  std::string class_name;
  Json config;
};

absl::StatusOr<ClassAndConfig> Unwrapped(const Json& json) {
  if (!json.is_object() || !json.contains("class_name") ||
      !json["class_name"].is_string() || !json.contains("config") ||
      !json["config"].is_object()) {
    return absl::InvalidArgumentError(
        "expected {\"class_name\": ..., \"config\": {...}}");
  }
  return ClassAndConfig{json["class_name"].get<std::string>(), json["config"]};
}

const ScheduleKind* FindKerasSchedule(absl::string_view class_name) {
  for (const ScheduleKind& kind : ScheduleKinds()) {
    if (kind.keras_class == class_name) return &kind;
  }
  return class_name == kProgramScheduleKind.keras_class ? &kProgramScheduleKind
                                                        : nullptr;
}

absl::StatusOr<proto::LearningRateSchedule> ScheduleFrom(const Json& json) {
  ASSIGN_OR_RETURN(const ClassAndConfig given, Unwrapped(json));
  const ScheduleKind* const kind = FindKerasSchedule(given.class_name);
  if (kind == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no schedule ", given.class_name));
  }
  proto::LearningRateSchedule schedule;
  Message* const arguments = schedule.GetReflection()->MutableMessage(
      &schedule, schedule.GetDescriptor()->FindFieldByNumber(kind->kind_case));
  for (const auto& [name, value] : given.config.items()) {
    if (name == "name") continue;
    const auto* const field = arguments->GetDescriptor()->FindFieldByName(name);
    if (field == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(given.class_name, " has no argument ", name));
    }
    RETURN_IF_ERROR(SetValue(value, field, arguments));
  }
  return schedule;
}

absl::Status SetArgument(const std::string& name, const Json& value,
                         proto::Optimizer* optimizer) {
  if (name == kLearningRate && value.is_object()) {
    ASSIGN_OR_RETURN(*optimizer->mutable_learning_rate_schedule(),
                     ScheduleFrom(value));
    return absl::OkStatus();
  }
  const auto* const shared = optimizer->GetDescriptor()->FindFieldByName(name);
  if (shared != nullptr && shared->real_containing_oneof() == nullptr &&
      shared->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    return SetValue(value, shared, optimizer);
  }
  Message* const rule = optimizer->GetReflection()->MutableMessage(
      optimizer, SetFieldOfOneof(*optimizer));
  const auto* const field = rule->GetDescriptor()->FindFieldByName(name);
  if (field != nullptr) return SetValue(value, field, rule);
  ASSIGN_OR_RETURN(const bool is_ignored, IsIgnored(name, value));
  if (is_ignored) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(OptimizerName(*optimizer), " has no argument ", name));
}

// Returns the object of the optimizer without its loss scale. `complete` is the
// result of CompleteOptimizer().
absl::StatusOr<Json> RuleConfig(const proto::Optimizer& complete) {
  Json config;
  if (complete.has_learning_rate_schedule()) {
    ASSIGN_OR_RETURN(const proto::LearningRateSchedule schedule,
                     CompleteSchedule(complete.learning_rate_schedule()));
    config[kLearningRate] = Wrapped(
        schedule.has_program() ? kProgramModule : "keras.optimizers.schedules",
        FindScheduleKind(schedule)->keras_class, ScheduleConfig(schedule));
  } else {
    config[kLearningRate] = *ConstantLearningRate(complete);
  }
  for (const char* const name :
       {kWeightDecay, "clipnorm", "global_clipnorm", "clipvalue", "use_ema",
        "ema_momentum", "ema_overwrite_frequency",
        "gradient_accumulation_steps"}) {
    config[name] =
        ValueOf(complete, complete.GetDescriptor()->FindFieldByName(name));
  }
  // AdamW is the only class that does not accept None for weight_decay.
  if (FindOptimizerKind(complete)->keras_class == "AdamW") {
    config[kWeightDecay] = complete.weight_decay();
  }
  const Message& rule =
      complete.GetReflection()->GetMessage(complete, SetFieldOfOneof(complete));
  for (int i = 0; i < rule.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* const field = rule.GetDescriptor()->field(i);
    if (IsHyperparameter(*field)) config[field->name()] = ValueOf(rule, field);
  }
  return Wrapped(complete.has_program() ? kProgramModule : "keras.optimizers",
                 FindOptimizerKind(complete)->keras_class, std::move(config));
}

const OptimizerKind* FindKerasKind(absl::string_view class_name) {
  for (const OptimizerKind* const kind : kOptimizerKinds) {
    // Keras ignores case, too: "adam", "RMSProp".
    if (absl::EqualsIgnoreCase(kind->keras_class, class_name)) return kind;
  }
  return class_name == kProgramKind.keras_class ? &kProgramKind : nullptr;
}

absl::StatusOr<proto::Optimizer> OptimizerFrom(const ClassAndConfig& given) {
  const OptimizerKind* const kind = FindKerasKind(given.class_name);
  if (kind == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no optimizer ", given.class_name));
  }
  proto::Optimizer optimizer;
  optimizer.GetReflection()->MutableMessage(
      &optimizer,
      optimizer.GetDescriptor()->FindFieldByNumber(kind->rule_case));
  for (const auto& [name, value] : given.config.items()) {
    RETURN_IF_ERROR(SetArgument(name, value, &optimizer));
  }
  return optimizer;
}

absl::StatusOr<proto::Optimizer> LossScaleFrom(const Json& config) {
  proto::Optimizer optimizer;
  proto::Optimizer::LossScale scale;
  for (const auto& [name, value] : config.items()) {
    // LossScaleOptimizer has the other arguments of optimizers, but rejects
    // them.
    const auto* const field = scale.GetDescriptor()->FindFieldByName(name);
    if (name == "inner_optimizer") {
      ASSIGN_OR_RETURN(const ClassAndConfig inner, Unwrapped(value));
      ASSIGN_OR_RETURN(optimizer, OptimizerFrom(inner));
    } else if (field != nullptr) {
      RETURN_IF_ERROR(SetValue(value, field, &scale));
    } else if (name != "name" && name != "ema_momentum" && !value.is_null() &&
               value != false) {
      return absl::InvalidArgumentError(
          absl::StrCat(kLossScaleClass, ": ", name, " is ", value.dump(),
                       "; Keras takes it for the inner optimizer only"));
    }
  }
  if (optimizer.rule_case() == proto::Optimizer::RULE_NOT_SET) {
    return absl::InvalidArgumentError(
        absl::StrCat(kLossScaleClass, " has no inner_optimizer"));
  }
  *optimizer.mutable_loss_scale() = scale;
  return optimizer;
}

}  // namespace

absl::StatusOr<std::string> KerasConfigOf(const proto::Optimizer& optimizer) {
  ASSIGN_OR_RETURN(const proto::Optimizer complete,
                   CompleteOptimizer(optimizer));
  ASSIGN_OR_RETURN(Json inner, RuleConfig(complete));
  if (!complete.has_loss_scale()) return inner.dump();
  Json config = {{"inner_optimizer", std::move(inner)}};
  const Message& scale = complete.loss_scale();
  for (int i = 0; i < scale.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* const field = scale.GetDescriptor()->field(i);
    config[field->name()] = ValueOf(scale, field);
  }
  return Wrapped("keras.optimizers", kLossScaleClass, std::move(config)).dump();
}

absl::StatusOr<proto::Optimizer> OptimizerFromKerasConfig(
    absl::string_view json) {
  const Json parsed = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  ASSIGN_OR_RETURN(const ClassAndConfig given, Unwrapped(parsed));
  return given.class_name == kLossScaleClass ? LossScaleFrom(given.config)
                                             : OptimizerFrom(given);
}

}  // namespace muster
