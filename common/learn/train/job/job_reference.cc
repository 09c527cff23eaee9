#include "common/learn/train/job/job_reference.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/learning_rate_schedules.h"
#include "common/compute/optimizers/optimizer_kind.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/optimizers/schedule_kind.h"
#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initializer.h"
#include "common/core/base/check.h"
#include "common/core/base/did_you_mean.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
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

namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

constexpr size_t kLineWidth = 78;

// A message of the schema.
struct Section {
  const Descriptor* message = nullptr;
  // The field that leads to it by the shortest path, "" for the top level:
  // "model.sequential.layers.dense".
  std::string path;
  const FieldDescriptor* field = nullptr;  // Null for the top level.
};

// The comment of something in the schema as one paragraph. What stands behind
// a field of a known default repeats the default.
template <typename Entity>
std::string CommentOf(const Entity& entity, bool has_default = false) {
  google::protobuf::SourceLocation location;
  if (!entity.GetSourceLocation(&location)) return "";
  const std::string text =
      absl::StrCat(location.leading_comments, " ",
                   has_default ? "" : location.trailing_comments);
  return absl::StrJoin(
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty()), " ");
}

class Reference {
 public:
  Reference() : defaults_(JobDefaults()) { FindSections(); }

  const std::vector<Section>& sections() const { return sections_; }

  const Section& SectionOf(const FieldDescriptor& field) const {
    return sections_[numbers_.at(field.message_type()->full_name())];
  }

  // True if the field is a message with fields.
  static bool HasSection(const FieldDescriptor& field) {
    return field.message_type() != nullptr && !field.is_map() &&
           field.message_type()->field_count() > 0;
  }

  // "integer", "one of RELU, TANH", "{ ... }", "list of strings".
  std::string TypeOf(const FieldDescriptor& field) const {
    if (field.is_map()) {
      const Descriptor& entry = *field.message_type();
      return absl::StrCat("map from ", ScalarType(*entry.FindFieldByNumber(1)),
                          " to ", ScalarType(*entry.FindFieldByNumber(2)));
    }
    const std::string type = ScalarType(field);
    return field.is_repeated() ? absl::StrCat("list of ", type) : type;
  }

  // "required", "default 0.001", or "".
  std::string DefaultOf(const FieldDescriptor& field) const {
    const auto found = defaults_.find(field.full_name());
    if (found == defaults_.end()) return "";
    if (found->second.is_required) return "required";
    if (found->second.text.empty()) return "";
    return absl::StrCat("default ", found->second.text);
  }

 private:
  // Messages that are reached from the top level, nearest first.
  void FindSections() {
    const Descriptor* const top =
        JobSchema().FindMessageTypeByName("muster.proto.TrainingJob");
    MUSTER_CHECK(top != nullptr);
    std::deque<Section> queue = {{.message = top}};
    while (!queue.empty()) {
      Section section = std::move(queue.front());
      queue.pop_front();
      if (!numbers_.emplace(section.message->full_name(), sections_.size())
               .second) {
        continue;
      }
      for (int i = 0; i < section.message->field_count(); ++i) {
        const FieldDescriptor* const field = section.message->field(i);
        if (!HasSection(*field)) continue;
        queue.push_back(
            {.message = field->message_type(),
             .path = section.path.empty()
                         ? field->name()
                         : absl::StrCat(section.path, ".", field->name()),
             .field = field});
      }
      sections_.push_back(std::move(section));
    }
  }

  static std::string ScalarType(const FieldDescriptor& field) {
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_BOOL:
        return "true or false";
      case FieldDescriptor::CPPTYPE_DOUBLE:
      case FieldDescriptor::CPPTYPE_FLOAT:
        return "number";
      case FieldDescriptor::CPPTYPE_STRING:
        return "string";
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return HasSection(field) ? "{ ... }" : "{}";
      case FieldDescriptor::CPPTYPE_ENUM:
        return NamesOf(*field.enum_type());
      default:
        return "integer";
    }
  }

  static std::string NamesOf(const EnumDescriptor& values) {
    std::vector<std::string> names;
    for (int i = 0; i < values.value_count(); ++i) {
      names.push_back(values.value(i)->name());
    }
    return absl::StrJoin(names, " | ");
  }

  const std::map<std::string, JobDefault> defaults_;
  std::vector<Section> sections_;
  std::map<std::string, size_t> numbers_;  // In sections_, by full name.
};

// What is known of a field besides its name: type, default, comments of the
// field and of the values of its enum.
struct FieldText {
  std::string type;
  std::string default_value = "";
  std::string comment = "";
};

FieldText TextOf(const Reference& reference, const FieldDescriptor& field) {
  FieldText text = {.type = reference.TypeOf(field),
                    .default_value = reference.DefaultOf(field)};
  text.comment = CommentOf(field, !text.default_value.empty());
  if (field.message_type() != nullptr && !field.is_map() &&
      text.comment.empty()) {
    text.comment = CommentOf(*field.message_type());
  }
  if (field.enum_type() == nullptr) return text;
  for (int i = 0; i < field.enum_type()->value_count(); ++i) {
    const auto& value = *field.enum_type()->value(i);
    const std::string comment = CommentOf(value);
    if (comment.empty()) continue;
    absl::StrAppend(&text.comment, text.comment.empty() ? "" : " ",
                    value.name(), ": ", comment);
  }
  return text;
}

void AppendWrapped(absl::string_view text, absl::string_view indent,
                   std::string* out) {
  size_t column = 0;
  for (const absl::string_view word :
       absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (column > 0 && column + 1 + word.size() > kLineWidth) {
      absl::StrAppend(out, "\n");
      column = 0;
    }
    absl::StrAppend(out, column == 0 ? indent : " ", word);
    column += (column == 0 ? indent.size() : 1) + word.size();
  }
  if (column > 0) absl::StrAppend(out, "\n");
}

void AppendField(const Reference& reference, const FieldDescriptor& field,
                 std::string* out) {
  const FieldText text = TextOf(reference, field);
  AppendWrapped(
      absl::StrCat(field.name(), ": ", text.type,
                   text.default_value.empty() ? "" : ", ", text.default_value),
      "  ", out);
  AppendWrapped(text.comment, "      ", out);
}

void AppendFields(const Reference& reference, const Descriptor& message,
                  std::string* out) {
  for (int i = 0; i < message.field_count(); ++i) {
    AppendField(reference, *message.field(i), out);
  }
}

std::string MarkdownCell(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"|", "\\|"}, {"<", "&lt;"}});
}

// The anchor that GitHub gives to the heading of a section.
std::string AnchorOf(const Section& section) {
  return absl::AsciiStrToLower(
      absl::StrReplaceAll(section.path.empty() ? "the job file" : section.path,
                          {{".", ""}, {" ", "-"}}));
}

void AppendMarkdown(const Reference& reference, const Section& section,
                    std::string* out) {
  absl::StrAppend(out, "\n## ",
                  section.path.empty() ? "The job file"
                                       : absl::StrCat("`", section.path, "`"),
                  "\n\n");
  std::string comment =
      section.field == nullptr ? "" : CommentOf(*section.field);
  const std::string of_message = CommentOf(*section.message);
  if (!comment.empty() && !of_message.empty()) comment += " ";
  absl::StrAppend(&comment, of_message);
  if (!comment.empty()) {
    AppendWrapped(comment, "", out);
    absl::StrAppend(out, "\n");
  }
  absl::StrAppend(out, "| field | type | meaning |\n| --- | --- | --- |\n");
  for (int i = 0; i < section.message->field_count(); ++i) {
    const FieldDescriptor& field = *section.message->field(i);
    const FieldText text = TextOf(reference, field);
    std::string name = absl::StrCat("`", field.name(), "`");
    if (Reference::HasSection(field)) {
      name = absl::StrCat("[", name, "](#",
                          AnchorOf(reference.SectionOf(field)), ")");
    }
    std::string meaning = text.default_value;
    if (!meaning.empty() && !text.comment.empty()) meaning += ". ";
    absl::StrAppend(&meaning, text.comment);
    absl::StrAppend(out, "| ", name, " | ", MarkdownCell(text.type), " | ",
                    MarkdownCell(meaning), " |\n");
  }
}

}  // namespace

absl::StatusOr<std::string> ExplainJobField(absl::string_view name) {
  const Reference reference;
  std::string text;
  if (name.empty()) {
    AppendFields(reference, *reference.sections()[0].message, &text);
    return text;
  }
  std::vector<absl::string_view> names;
  absl::flat_hash_set<const Descriptor*> explained;
  for (const Section& section : reference.sections()) {
    for (int i = 0; i < section.message->field_count(); ++i) {
      const FieldDescriptor& field = *section.message->field(i);
      names.push_back(field.name());
      if (field.name() != name) continue;
      absl::StrAppend(&text, text.empty() ? "" : "\n", section.path,
                      section.path.empty() ? "" : ".", field.name(), "\n");
      AppendField(reference, field, &text);
      if (!Reference::HasSection(field)) continue;
      if (explained.insert(field.message_type()).second) {
        absl::StrAppend(&text, "It has\n");
        AppendFields(reference, *field.message_type(), &text);
      }
    }
  }
  if (!text.empty()) return text;
  return absl::NotFoundError(absl::StrCat("no field of a job file is called \"",
                                          name.substr(0, 64), "\"",
                                          DidYouMean(name, names)));
}

std::string JobReferencePage() {
  const Reference reference;
  std::string page =
      "# Job file reference\n\n"
      "All fields of a job file. `coordinator --explain=NAME` prints those of\n"
      "one name. [formats.md](formats.md#job-file) has the syntax.\n\n"
      "This page is generated: `bazel run "
      "//common/learn/train/job:print_job_reference >\n"
      "docs/job_reference.md`.\n";
  for (const Section& section : reference.sections()) {
    AppendMarkdown(reference, section, &page);
  }
  return page;
}

}  // namespace muster
