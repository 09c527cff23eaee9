#include "common/learn/train/job/job_reference.h"

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/core/base/check.h"
#include "common/core/base/did_you_mean.h"
#include "common/learn/train/job/job_defaults.h"
#include "common/learn/train/job/job_schema.h"
#include "google/protobuf/descriptor.h"

namespace muster {
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
