#include "common/learn/train/job/job_defaults.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/learning_rate_schedules.h"
#include "common/compute/optimizers/optimizer_kind.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/optimizers/schedule_kind.h"
#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initializer.h"
#include "common/core/base/check.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/train/job/job_schema.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"
#include "proto/optimizer.pb.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

struct Defaults {
  std::map<std::string, JobDefault> by_field;
  // The names of initializers, by their serialized defaults.
  std::map<std::string, std::string> initializers;
};

// Records the values that it is shown, which are the defaults.
class DefaultCollector final : public ConfigVisitor {
 public:
  DefaultCollector(const Descriptor& message, Defaults* defaults)
      : message_(message), defaults_(*defaults) {}

  using ConfigVisitor::Visit;
  void Visit(ConfigName name, bool& value) override {
    Add(name, value ? "true" : "false");
  }
  void Visit(ConfigName name, int64_t& value) override {
    Add(name, absl::StrCat(value));
  }
  void Visit(ConfigName name, double& value) override {
    Add(name, absl::StrCat(value));
  }
  void Visit(ConfigName name, uint64_t& seed) override {
    Add(name, seed == 0 ? "none" : absl::StrCat(seed));
  }
  void Visit(ConfigName name, std::string& value) override {
    Add(name, value.empty() ? "none" : absl::StrCat("\"", value, "\""));
  }
  void Visit(ConfigName name, std::vector<int64_t>& values) override {
    Add(name, List(values));
  }
  void Visit(ConfigName name, std::vector<double>& values) override {
    Add(name, List(values));
  }
  void Visit(ConfigName name, std::vector<std::string>& values) override {
    Add(name, List(values));
  }
  void Visit(ConfigName name, Initializer& value) override {
    const auto found =
        defaults_.initializers.find(value.definition().SerializeAsString());
    if (found != defaults_.initializers.end()) Add(name, found->second);
  }
  void Visit(ConfigName name, Regularizer& value) override {
    if (!value) Add(name, "none");
  }
  void Visit(ConfigName name, Constraint& value) override {
    if (!value) Add(name, "none");
  }
  void Visit(ConfigName name, LayerPtr& layer) override {
    if (layer == nullptr) Add(name, "none");
  }
  void VisitLayers(ConfigName name, std::vector<LayerPtr>& layers) override {
    if (layers.empty()) Add(name, "none");
  }
  void VisitChoice(ConfigName name, int& index,
                   absl::Span<const absl::string_view> names) override {
    Add(name, absl::AsciiStrToUpper(names[index]));
  }
  void VisitPairs(ConfigName name, std::vector<int64_t>& values) override {
    Add(name, List(values));
  }
  bool IsPresent(ConfigName name, bool is_set) override {
    if (!is_set) Add(name, "none");
    return is_set;
  }
  // What has no default is refused for the value that stands in its place.
  void Refuse(ConfigName name, absl::string_view) override {
    if (JobDefault* const found = Find(name)) *found = {.is_required = true};
  }

 private:
  template <typename T>
  static std::string List(const std::vector<T>& values) {
    if (values.empty()) return "none";
    return absl::StrCat("[", absl::StrJoin(values, ", "), "]");
  }

  void Add(ConfigName name, std::string text) {
    JobDefault* const found = Find(name);
    if (found != nullptr && found->text.empty()) found->text = std::move(text);
  }

  // Null if job files have no such field.
  JobDefault* Find(ConfigName name) {
    const FieldDescriptor* const field =
        message_.FindFieldByName(std::string(name.job));
    return field == nullptr ? nullptr : &defaults_.by_field[field->full_name()];
  }

  const Descriptor& message_;
  Defaults& defaults_;
};

// The message of the kind in the schema of job files.
const Descriptor& MessageOf(absl::string_view name, absl::string_view kind) {
  const Descriptor* const message =
      JobSchema().FindMessageTypeByName(absl::StrCat("muster.proto.", name));
  MUSTER_CHECK(message != nullptr);
  const FieldDescriptor* const field =
      message->FindFieldByName(std::string(kind));
  MUSTER_CHECK(field != nullptr);
  return *field->message_type();
}

// Adds the fields of a message that holds the defaults, and those of the
// messages in it.
void AddMessage(const Message& message, Defaults* defaults) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    if (field->is_repeated()) continue;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      AddMessage(message.GetReflection()->GetMessage(message, field), defaults);
      continue;
    }
    JobDefault& found = defaults->by_field[field->full_name()];
    if (!found.text.empty()) continue;
    google::protobuf::TextFormat::PrintFieldValueToString(message, field, -1,
                                                          &found.text);
  }
}

}  // namespace

std::map<std::string, JobDefault> JobDefaults() {
  Defaults defaults;
  for (const InitializerKind& kind : kInitializerKinds) {
    DefaultCollector collector(MessageOf("JobInitializer", kind.name),
                               &defaults);
    defaults.initializers.emplace(
        kind.make(collector).definition().SerializeAsString(), kind.name);
  }
  ForEachJobKind([&](absl::string_view message, absl::string_view kind,
                     absl::FunctionRef<void(ConfigVisitor&)> visit) {
    DefaultCollector collector(MessageOf(message, kind), &defaults);
    visit(collector);
  });
  for (const OptimizerKind* const kind : kOptimizerKinds) {
    proto::Optimizer optimizer = kind->defaults().message();
    // The default of weight decay differs from rule to rule.
    optimizer.clear_weight_decay();
    AddMessage(optimizer, &defaults);
  }
  for (const ScheduleKind& kind : ScheduleKinds()) {
    AddMessage(kind.defaults().message(), &defaults);
  }
  return std::move(defaults.by_field);
}

}  // namespace muster
