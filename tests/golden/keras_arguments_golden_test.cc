// Writes every class of the tables with each of its arguments at its default,
// at the ends of its range, and at None. read_keras_arguments.py loads all
// cases in Keras.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/optimizers/keras_config.h"
#include "common/compute/optimizers/optimizer_kind.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/optimizers/schedule_kind.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/compute/variables/constraint.h"
#include "common/core/base/check.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/learn/nn/constraints.h"
#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/layers.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/keras/keras_argument_reader.h"
#include "common/learn/train/keras/keras_compile_config.h"
#include "common/learn/train/keras/keras_layer_config.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/optimizer.pb.h"
#include "tests/golden/argument_setter.h"

namespace muster {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using Json = nlohmann::ordered_json;

// The cases of a class, and the names of its arguments.
struct ClassCases {
  std::string section;  // The module in Keras: "layers".
  std::string name;     // The class in Keras, or another name for it.
  ClassArguments arguments;
};

ClassArguments ArgumentsOf(const std::string& section,
                           const std::string& name) {
  static const auto& kAll = *new Json(Json::parse(
      std::ifstream("tests/golden/keras_arguments.json"), nullptr, false));
  MUSTER_CHECK(kAll.is_object());
  ClassArguments arguments;
  // The entries of the class override those of "*", which apply to all classes.
  for (const std::string& entry : {std::string("*"), name}) {
    if (!kAll.contains(section) || !kAll[section].contains(entry)) continue;
    const Json& found = kAll[section][entry];
    arguments.base.update(found.value("base", Json::object()));
    arguments.values.update(found.value("values", Json::object()));
  }
  return arguments;
}

// Collects the cases of all classes.
class CaseWriter {
 public:
  // Adds the result of `write` for each variant of each argument. `write`
  // returns null for arguments that Muster refuses.
  void AddClass(const std::string& section, const std::string& name,
                const std::function<Json(ArgumentSetter& setter)>& write) {
    const ClassArguments arguments = ArgumentsOf(section, name);
    ArgumentSetter defaults(arguments, "", 0);
    const Json written = write(defaults);
    EXPECT_EQ(defaults.refusal(), "")
        << section << "/" << name
        << ": tests/golden/keras_arguments.json needs a base";
    Add(section, name, arguments.base, "", nullptr, written);
    const std::set<std::string> names(defaults.names().begin(),
                                      defaults.names().end());
    for (const std::string& argument : names) {
      int accepted_count = 0;
      for (int variant = 0;; ++variant) {
        ArgumentSetter setter(arguments, argument, variant);
        const Json json = write(setter);
        if (!setter.is_set()) break;
        if (json.is_null() || !setter.refusal().empty()) continue;
        ++accepted_count;
        Add(section, name, arguments.base, argument, setter.meant(), json);
      }
      EXPECT_GT(accepted_count, 0)
          << section << "/" << name << " accepts no value of " << argument
          << ": tests/golden/keras_arguments.json needs values";
    }
  }

  void Add(const std::string& section, const std::string& name,
           const Json& base, const std::string& argument, const Json& meant,
           const Json& written) {
    cases_.push_back({{"section", section},
                      {"class", name},
                      {"base", base},
                      {"argument", argument},
                      {"meant", meant},
                      {"written", written}});
  }

  const Json& cases() const { return cases_; }

 private:
  Json cases_ = Json::array();
};

// Expects that Muster reads the layer that it has written as the same layer.
void ExpectReadAgain(const LayerKind& kind, const Json& written) {
  const Json& config = written["config"];
  // Inner layers, and Normalization without axes, can be read only as part of a
  // model.
  if (kind.name == "normalization" && config["axis"].is_null()) return;
  for (const char* const inner : {"layer", "cell", "cells"}) {
    if (config.contains(inner)) return;
  }
  KerasArgumentReader reader(written.dump(), config);
  const LayerPtr again = kind.make();
  again->VisitConfig(reader);
  EXPECT_OK(reader.Finish());
  again->SetPath("layer");
  Json read = KerasLayerConfig(*again)["config"];
  for (const char* const common : {"trainable", "dtype"}) {
    if (config.contains(common)) read[common] = config[common];
  }
  EXPECT_EQ(read, config) << written;
}

void AddLayers(CaseWriter* writer) {
  for (const LayerKind& kind : kLayerKinds) {
    const std::string name = kind.make()->kind();
    writer->AddClass("layers", name, [&](ArgumentSetter& setter) {
      const LayerPtr layer = kind.make();
      layer->VisitConfig(setter);
      layer->SetPath("layer");
      Json written = KerasLayerConfig(*layer);
      if (setter.refusal().empty()) ExpectReadAgain(kind, written);
      return written;
    });
    // The arguments that every layer has.
    const ClassArguments arguments = ArgumentsOf("layers", name);
    const auto add = [&](const char* argument, const Json& meant,
                         const std::function<void(Layer&)>& set) {
      const LayerPtr layer = kind.make();
      ArgumentSetter setter(arguments, "", 0);
      layer->VisitConfig(setter);
      set(*layer);
      layer->SetPath("layer");
      writer->Add("layers", name, arguments.base, argument, meant,
                  KerasLayerConfig(*layer));
    };
    add("trainable", false, [](Layer& layer) { layer.set_trainable(false); });
    // Some layers visit their dtype themselves.
    ArgumentSetter names(arguments, "", 0);
    kind.make()->VisitConfig(names);
    if (std::find(names.names().begin(), names.names().end(), "dtype") !=
        names.names().end()) {
      continue;
    }
    for (const DTypePolicy& policy :
         {kMixedBfloat16Policy, kMixedFloat16Policy}) {
      add("dtype", DTypePolicyName(policy),
          [&](Layer& layer) { layer.set_dtype_policy(policy); });
    }
  }
}

Json CompileConfigOf(const CompileOptions& options) {
  const absl::StatusOr<Json> config = KerasCompileConfig(options);
  EXPECT_OK(config.status());
  return config.ok() ? *config : Json();
}

void AddLossesAndMetrics(CaseWriter* writer) {
  for (const LossKind& kind : kLossKinds) {
    writer->AddClass("losses", std::string(kind.keras_class),
                     [&](ArgumentSetter& setter) {
                       const Loss loss = kind.make(setter);
                       return CompileConfigOf({.loss = loss})["loss"];
                     });
  }
  for (const MetricKind& kind : kMetricKinds) {
    writer->AddClass(
        "metrics", std::string(kind.keras_class), [&](ArgumentSetter& setter) {
          const Metric metric = kind.make(setter);
          return CompileConfigOf({.metrics = {metric}})["metrics"][0];
        });
  }
}

// Adds initializers, regularizers and constraints, as arguments of a layer.
void AddParts(CaseWriter* writer) {
  const auto part_of = [](const DenseOptions& options, const char* argument) {
    const LayerPtr layer = Dense(3, options);
    return KerasLayerConfig(*layer)["config"][argument];
  };
  for (const InitializerKind& kind : kInitializerKinds) {
    writer->AddClass("initializers", std::string(kind.name),
                     [&](ArgumentSetter& setter) {
                       return part_of({.kernel_initializer = kind.make(setter)},
                                      "kernel_initializer");
                     });
  }
  for (const double scale : {1e-3, 1.0, 2.0}) {
    for (const FanMode mode :
         {FanMode::kFanIn, FanMode::kFanOut, FanMode::kFanAverage}) {
      for (const ScalingDistribution distribution :
           {ScalingDistribution::kTruncatedNormal,
            ScalingDistribution::kUntruncatedNormal,
            ScalingDistribution::kUniform}) {
        static constexpr const char* kModes[] = {"fan_in", "fan_out",
                                                 "fan_avg"};
        static constexpr const char* kDistributions[] = {
            "truncated_normal", "untruncated_normal", "uniform"};
        const Json base = {
            {"scale", scale},
            {"mode", kModes[static_cast<int>(mode)]},
            {"distribution", kDistributions[static_cast<int>(distribution)]}};
        writer->Add("initializers", "variance_scaling", base, "seed", 3,
                    part_of({.kernel_initializer =
                                 VarianceScaling({.scale = scale,
                                                  .mode = mode,
                                                  .distribution = distribution,
                                                  .seed = 3})},
                            "kernel_initializer"));
      }
    }
  }
  for (const RegularizerKind& kind : kRegularizerKinds) {
    writer->AddClass("regularizers", std::string(kind.name),
                     [&](ArgumentSetter& setter) {
                       return part_of({.kernel_regularizer = kind.make(setter)},
                                      "kernel_regularizer");
                     });
  }
  for (const ConstraintKind& kind : kConstraintKinds) {
    writer->AddClass(
        "constraints", std::string(kind.name), [&](ArgumentSetter& setter) {
          const Constraint made = kind.make(setter);
          if (!CheckConstraint(made.definition()).ok()) {
            return Json();
          }
          return part_of({.kernel_constraint = made}, "kernel_constraint");
        });
  }
}

// Sets a field to a value of JSON.
void SetField(const Json& value, const FieldDescriptor* field,
              Message* message) {
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  if (field->is_repeated()) {
    reflection.ClearField(message, field);
    for (const Json& entry : value) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
        reflection.AddString(message, field, entry.get<std::string>());
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
        reflection.AddInt64(message, field, entry.get<int64_t>());
      } else {
        reflection.AddDouble(message, field, entry.get<double>());
      }
    }
  } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
    reflection.SetBool(message, field, value.get<bool>());
  } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
    reflection.SetInt64(message, field, value.get<int64_t>());
  } else {
    reflection.SetDouble(message, field, value.get<double>());
  }
}

// Returns the values to try for a field.
Json VariantsOf(const ClassArguments& arguments, const FieldDescriptor* field) {
  if (const auto given = arguments.values.find(field->name());
      given != arguments.values.end()) {
    return given.value();
  }
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    return {{"a", "b.*"}, Json::array()};
  }
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) return {false, true};
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
    return {0, 1, 2, int64_t{1} << 40};
  }
  return {0.0, 0.5, 1.0, -1.0, 1e-30, 1e30};
}

// Adds the fields of a message, each with each variant. `write` returns null
// for messages that Muster refuses.
void AddFields(const std::string& section, const std::string& name,
               const Message& message,
               const std::function<Json(const Message& changed)>& write,
               CaseWriter* writer) {
  const ClassArguments arguments = ArgumentsOf(section, name);
  const google::protobuf::Descriptor& descriptor = *message.GetDescriptor();
  const std::unique_ptr<Message> base(message.New());
  base->CopyFrom(message);
  for (const auto& [key, value] : arguments.base.items()) {
    const FieldDescriptor* const field = descriptor.FindFieldByName(key);
    if (field != nullptr) SetField(value, field, base.get());
  }
  writer->Add(section, name, arguments.base, "", nullptr, write(*base));
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor* const field = descriptor.field(i);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) continue;
    int accepted_count = 0;
    for (const Json& value : VariantsOf(arguments, field)) {
      const std::unique_ptr<Message> changed(base->New());
      changed->CopyFrom(*base);
      SetField(value, field, changed.get());
      const Json json = write(*changed);
      if (json.is_null()) continue;
      ++accepted_count;
      writer->Add(section, name, arguments.base, field->name(), value, json);
    }
    EXPECT_GT(accepted_count, 0)
        << section << "/" << name << " accepts no value of " << field->name()
        << ": tests/golden/keras_arguments.json needs values";
  }
}

// Returns null if the optimizer is refused.
Json OptimizerToJson(const proto::Optimizer& optimizer) {
  if (!UpdateRule::Create(optimizer).ok()) return nullptr;
  return CompileConfigOf({.optimizer = optimizer})["optimizer"];
}

void AddOptimizers(CaseWriter* writer) {
  for (const OptimizerKind* const kind : kOptimizerKinds) {
    const std::string name(kind->keras_class);
    const proto::Optimizer defaults = kind->defaults().message();
    // The fields that all optimizers have, then those of this one.
    AddFields(
        "optimizers", name, defaults,
        [](const Message& changed) {
          return OptimizerToJson(static_cast<const proto::Optimizer&>(changed));
        },
        writer);
    const FieldDescriptor* const rule =
        proto::Optimizer::descriptor()->FindFieldByNumber(kind->rule_case);
    AddFields(
        "optimizers", name,
        defaults.GetReflection()->GetMessage(defaults, rule),
        [&](const Message& changed) {
          proto::Optimizer optimizer = defaults;
          optimizer.GetReflection()
              ->MutableMessage(&optimizer, rule)
              ->CopyFrom(changed);
          return OptimizerToJson(optimizer);
        },
        writer);
  }
  AddFields(
      "optimizers", std::string(kLossScaleClass), proto::Optimizer::LossScale(),
      [&](const Message& changed) {
        proto::Optimizer optimizer = Sgd().message();
        optimizer.mutable_loss_scale()->CopyFrom(changed);
        return OptimizerToJson(optimizer);
      },
      writer);
}

void AddSchedules(CaseWriter* writer) {
  for (const ScheduleKind& kind : ScheduleKinds()) {
    const proto::LearningRateSchedule defaults = kind.defaults().message();
    const FieldDescriptor* const field =
        proto::LearningRateSchedule::descriptor()->FindFieldByNumber(
            kind.kind_case);
    AddFields(
        "schedules", std::string(kind.keras_class),
        defaults.GetReflection()->GetMessage(defaults, field),
        [&](const Message& changed) -> Json {
          proto::Optimizer optimizer;
          optimizer.mutable_sgd();
          proto::LearningRateSchedule* const schedule =
              optimizer.mutable_learning_rate_schedule();
          schedule->GetReflection()
              ->MutableMessage(schedule, field)
              ->CopyFrom(changed);
          const Json json = OptimizerToJson(optimizer);
          return json.is_null() ? json : json["config"]["learning_rate"];
        },
        writer);
  }
}

Json AllCases() {
  CaseWriter writer;
  AddLayers(&writer);
  AddLossesAndMetrics(&writer);
  AddParts(&writer);
  AddOptimizers(&writer);
  AddSchedules(&writer);
  return writer.cases();
}

TEST(KerasArgumentsGoldenTest, KerasReadsEachArgument) {
  const Json cases = AllCases();
  ASSERT_FALSE(HasFailure());
  const char* const python = std::getenv("MUSTER_KERAS_PYTHON");
  if (python == nullptr || *python == '\0') {
    GTEST_SKIP() << "MUSTER_KERAS_PYTHON does not name a Python with Keras";
  }
  const std::string path = testing::TempDir() + "keras_arguments.json";
  std::ofstream(path) << cases;
  const std::string command =
      absl::StrCat(python, " tests/golden/read_keras_arguments.py ", path);
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace muster
