#include "common/learn/train/job/job_schema.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/base/check.h"
#include "common/learn/nn/applications/applications.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/constraints.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/layers.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/train/callbacks/callbacks.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/dynamic_message.h"
#include "google/protobuf/message.h"
#include "proto/training_job_schema.h"

namespace muster {
namespace {

using google::protobuf::DescriptorProto;
using google::protobuf::EnumDescriptorProto;
using google::protobuf::FieldDescriptorProto;
using google::protobuf::FileDescriptorProto;
using google::protobuf::Message;

constexpr absl::string_view kPackage = ".muster.proto.";
// The fields that a message with kinds has by itself have smaller numbers.
constexpr int kFirstKindNumber = 1000;

// A message of a schema that is being built, and where it stands in its file:
// the path of google.protobuf.SourceCodeInfo.
struct Place {
  FileDescriptorProto* file = nullptr;
  DescriptorProto* message = nullptr;
  std::vector<int> path;

  void Comment(const std::vector<int>& path_of_part,
               absl::string_view text) const {
    if (text.empty()) return;
    auto* const location = file->mutable_source_code_info()->add_location();
    for (const int number : path) location->add_path(number);
    for (const int number : path_of_part) location->add_path(number);
    // Without a position a location is invalid.
    for (int i = 0; i < 3; ++i) location->add_span(0);
    location->set_leading_comments(std::string(text));
  }
};

// "early_stopping" -> "EarlyStopping".
std::string MessageName(absl::string_view kind) {
  std::string name;
  bool starts_word = true;
  for (const char c : kind) {
    if (c != '_') name.push_back(starts_word ? absl::ascii_toupper(c) : c);
    starts_word = c == '_';
  }
  return name;
}

// Adds a field to a message for each hyperparameter that it is shown.
class FieldCollector final : public ConfigVisitor {
 public:
  explicit FieldCollector(Place place) : place_(std::move(place)) {}

  using ConfigVisitor::Visit;
  void Visit(ConfigName name, bool&) override {
    Add(name, FieldDescriptorProto::TYPE_BOOL);
  }
  void Visit(ConfigName name, int64_t&) override {
    Add(name, FieldDescriptorProto::TYPE_INT64);
  }
  void VisitInt32(ConfigName name, int64_t&) override {
    Add(name, FieldDescriptorProto::TYPE_INT32);
  }
  void Visit(ConfigName name, double&) override {
    Add(name, FieldDescriptorProto::TYPE_DOUBLE);
  }
  void Visit(ConfigName name, uint64_t&) override {
    Add(name, FieldDescriptorProto::TYPE_UINT64);
  }
  void Visit(ConfigName name, std::string&) override {
    Add(name, FieldDescriptorProto::TYPE_STRING);
  }
  void Visit(ConfigName name, std::vector<int64_t>&) override {
    AddList(name, FieldDescriptorProto::TYPE_INT64);
  }
  void Visit(ConfigName name, std::vector<double>&) override {
    AddList(name, FieldDescriptorProto::TYPE_DOUBLE);
  }
  void Visit(ConfigName name, std::vector<std::string>&) override {
    AddList(name, FieldDescriptorProto::TYPE_STRING);
  }
  void VisitPairs(ConfigName name, std::vector<int64_t>& values) override {
    Visit(name, values);
  }
  void Visit(ConfigName name, Initializer&) override {
    AddMessage(name, "JobInitializer");
  }
  void Visit(ConfigName name, Regularizer&) override {
    AddMessage(name, "JobRegularizer");
  }
  void Visit(ConfigName name, Constraint&) override {
    AddMessage(name, "JobConstraint");
  }
  void Visit(ConfigName name, LayerPtr&) override {
    AddMessage(name, "JobLayer");
  }
  void VisitLayers(ConfigName name, std::vector<LayerPtr>&) override {
    FieldDescriptorProto* const field = AddMessage(name, "JobLayer");
    if (field != nullptr) {
      field->set_label(FieldDescriptorProto::LABEL_REPEATED);
    }
  }
  void VisitChoice(ConfigName name, int&,
                   absl::Span<const absl::string_view> names) override;
  // All are shown to it, also those that are optional.
  bool IsPresent(ConfigName, bool) override { return true; }
  // Values stay at their defaults, of which some are to be set.
  void Refuse(ConfigName, absl::string_view) override {}
  void Describe(absl::string_view text) override { place_.Comment({}, text); }

 private:
  // Returns null for what job files do not have, and for what was added before.
  FieldDescriptorProto* Add(ConfigName name, FieldDescriptorProto::Type type);
  void AddList(ConfigName name, FieldDescriptorProto::Type type) {
    FieldDescriptorProto* const field = Add(name, type);
    if (field == nullptr) return;
    field->set_label(FieldDescriptorProto::LABEL_REPEATED);
  }
  FieldDescriptorProto* AddMessage(ConfigName name, absl::string_view type) {
    FieldDescriptorProto* const field =
        Add(name, FieldDescriptorProto::TYPE_MESSAGE);
    if (field != nullptr) field->set_type_name(absl::StrCat(kPackage, type));
    return field;
  }

  const Place place_;
};

FieldDescriptorProto* FieldCollector::Add(ConfigName name,
                                          FieldDescriptorProto::Type type) {
  if (name.job.empty()) return nullptr;
  for (const FieldDescriptorProto& field : place_.message->field()) {
    if (field.name() == name.job) return nullptr;
  }
  const int index = place_.message->field_size();
  FieldDescriptorProto* const field = place_.message->add_field();
  field->set_name(std::string(name.job));
  field->set_number(index + 1);
  field->set_type(type);
  field->set_label(FieldDescriptorProto::LABEL_OPTIONAL);
  place_.Comment({DescriptorProto::kFieldFieldNumber, index}, name.description);
  return field;
}

void FieldCollector::VisitChoice(ConfigName name, int&,
                                 absl::Span<const absl::string_view> names) {
  FieldDescriptorProto* const field =
      Add(name, FieldDescriptorProto::TYPE_ENUM);
  if (field == nullptr) return;
  // Values of enums in one message must differ, so each enum has a message.
  DescriptorProto* const scope = place_.message->add_nested_type();
  scope->set_name(MessageName(name.job));
  EnumDescriptorProto* const choice = scope->add_enum_type();
  choice->set_name("Value");
  for (size_t i = 0; i < names.size(); ++i) {
    auto* const value = choice->add_value();
    value->set_name(absl::AsciiStrToUpper(names[i]));
    value->set_number(static_cast<int>(i));
  }
  field->set_type_name(absl::StrCat(scope->name(), ".Value"));
}

// With `optional` in proto3, as fields with presence have to say it.
void GivePresence(DescriptorProto* message) {
  for (FieldDescriptorProto& field : *message->mutable_field()) {
    const bool has_presence =
        field.label() == FieldDescriptorProto::LABEL_REPEATED ||
        field.type() == FieldDescriptorProto::TYPE_MESSAGE;
    if (has_presence) continue;
    field.set_proto3_optional(true);
    field.set_oneof_index(message->oneof_decl_size());
    message->add_oneof_decl()->set_name(absl::StrCat("_", field.name()));
  }
}

// Gives messages of a schema a field for each of their kinds.
class KindAdder {
 public:
  explicit KindAdder(google::protobuf::FileDescriptorSet* files)
      : files_(*files) {}

  void Add(absl::string_view name, absl::string_view kind,
           absl::FunctionRef<void(ConfigVisitor&)> visit) {
    Place place = Find(name);
    const int oneof = OneofOf(place.message);
    const int index = place.message->nested_type_size();
    DescriptorProto* const message = place.message->add_nested_type();
    message->set_name(MessageName(kind));
    FieldDescriptorProto* const field = place.message->add_field();
    field->set_name(std::string(kind));
    field->set_number(kFirstKindNumber + index);
    field->set_type(FieldDescriptorProto::TYPE_MESSAGE);
    field->set_label(FieldDescriptorProto::LABEL_OPTIONAL);
    field->set_type_name(absl::StrCat(kPackage, name, ".", message->name()));
    field->set_oneof_index(oneof);
    place.path.insert(place.path.end(),
                      {DescriptorProto::kNestedTypeFieldNumber, index});
    FieldCollector collector({place.file, message, std::move(place.path)});
    visit(collector);
    GivePresence(message);
  }

 private:
  Place Find(absl::string_view name) const {
    for (FileDescriptorProto& file : *files_.mutable_file()) {
      for (int i = 0; i < file.message_type_size(); ++i) {
        if (file.message_type(i).name() != name) continue;
        return {&file,
                file.mutable_message_type(i),
                {FileDescriptorProto::kMessageTypeFieldNumber, i}};
      }
    }
    MUSTER_CHECK(false);
    return {};
  }

  // The index of the message's oneof `kind`, which stands before those that
  // `optional` makes.
  static int OneofOf(DescriptorProto* message) {
    for (int i = 0; i < message->oneof_decl_size(); ++i) {
      if (message->oneof_decl(i).name() == "kind") return i;
    }
    for (FieldDescriptorProto& field : *message->mutable_field()) {
      if (field.has_oneof_index()) {
        field.set_oneof_index(field.oneof_index() + 1);
      }
    }
    message->add_oneof_decl()->set_name("kind");
    std::rotate(message->mutable_oneof_decl()->begin(),
                message->mutable_oneof_decl()->end() - 1,
                message->mutable_oneof_decl()->end());
    return 0;
  }

  google::protobuf::FileDescriptorSet& files_;
};

template <typename Kind>
void ShowKind(const Kind& kind, ConfigVisitor& visitor) {
  kind.make(visitor);
}

void ShowKind(const LayerKind& kind, ConfigVisitor& visitor) {
  kind.make()->VisitConfig(visitor);
}

void ShowKind(const CallbackKind& kind, ConfigVisitor& visitor) {
  // A callback without a required option is refused.
  kind.make(visitor, /*output=*/nullptr).status().IgnoreError();
}

struct Schema {
  Schema() {
    google::protobuf::FileDescriptorSet files;
    MUSTER_CHECK(files.ParseFromArray(
        kTrainingJobSchema, static_cast<int>(kTrainingJobSchemaSize)));
    KindAdder adder(&files);
    ForEachJobKind([&](absl::string_view message, absl::string_view kind,
                       absl::FunctionRef<void(ConfigVisitor&)> visit) {
      adder.Add(message, kind, visit);
    });
    for (const FileDescriptorProto& file : files.file()) {
      MUSTER_CHECK(pool.BuildFile(file) != nullptr);
    }
  }

  google::protobuf::DescriptorPool pool;
  google::protobuf::DynamicMessageFactory factory;
};

Schema& TheSchema() {
  static auto& schema = *new Schema();
  return schema;
}

std::unique_ptr<Message> NewOfFullName(const std::string& name) {
  Schema& schema = TheSchema();
  const auto* const type = schema.pool.FindMessageTypeByName(name);
  MUSTER_CHECK(type != nullptr);
  return std::unique_ptr<Message>(schema.factory.GetPrototype(type)->New());
}

}  // namespace

void ForEachJobKind(
    absl::FunctionRef<void(absl::string_view, absl::string_view,
                           absl::FunctionRef<void(ConfigVisitor&)>)>
        use) {
  const auto use_table = [use](absl::string_view message, const auto& kinds) {
    for (const auto& kind : kinds) {
      use(message, kind.name,
          [&](ConfigVisitor& visitor) { ShowKind(kind, visitor); });
    }
  };
  use_table("JobLayer", kLayerKinds);
  use_table("JobApplication", kApplicationKinds);
  use_table("JobInitializer", kInitializerKinds);
  use_table("JobRegularizer", kRegularizerKinds);
  use_table("JobConstraint", kConstraintKinds);
  use_table("JobLoss", kLossKinds);
  use_table("JobMetric", kMetricKinds);
  use_table("JobCallback", kCallbackKinds);
}

const google::protobuf::DescriptorPool& JobSchema() { return TheSchema().pool; }

std::unique_ptr<Message> NewJobMessage(absl::string_view type) {
  return NewOfFullName(absl::StrCat(kPackage.substr(1), type));
}

std::unique_ptr<Message> WithKinds(const Message& message) {
  std::unique_ptr<Message> copy =
      NewOfFullName(message.GetDescriptor()->full_name());
  MUSTER_CHECK(copy->ParsePartialFromString(message.SerializeAsString()));
  return copy;
}

void CopyFromKinds(const Message& message, Message* generated) {
  MUSTER_CHECK(message.GetDescriptor()->full_name() ==
               generated->GetDescriptor()->full_name());
  MUSTER_CHECK(generated->ParsePartialFromString(message.SerializeAsString()));
}

}  // namespace muster
