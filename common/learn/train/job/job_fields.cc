#include "common/learn/train/job/job_fields.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/core/base/did_you_mean.h"
#include "common/core/base/nesting_depth.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace muster {
namespace {

namespace pb = google::protobuf;
using Tokenizer = pb::io::Tokenizer;

// How many messages with a field of the wanted name an error lists.
constexpr size_t kPlaceCountMax = 4;

// The spelling by which names of enum values are compared: "leaky_relu",
// "LeakyReLU" and "LEAKY-RELU" are one.
std::string Spelling(absl::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (absl::ascii_isalnum(c)) letters.push_back(absl::ascii_tolower(c));
  }
  return letters;
}

const pb::EnumValueDescriptor* FindEnumValue(const pb::EnumDescriptor& type,
                                             absl::string_view name) {
  const std::string wanted = Spelling(name);
  for (int i = 0; i < type.value_count(); ++i) {
    if (Spelling(type.value(i)->name()) == wanted) return type.value(i);
  }
  return nullptr;
}

std::vector<absl::string_view> FieldNames(const pb::Descriptor& type) {
  std::vector<absl::string_view> names;
  for (int i = 0; i < type.field_count(); ++i) {
    names.push_back(type.field(i)->name());
  }
  return names;
}

std::vector<absl::string_view> ValueNames(const pb::EnumDescriptor& type) {
  std::vector<absl::string_view> names;
  for (int i = 0; i < type.value_count(); ++i) {
    names.push_back(type.value(i)->name());
  }
  return names;
}

// The tokenizer's errors are found again by protobuf's parser.
class NoErrors final : public pb::io::ErrorCollector {
 public:
  void AddError(int, pb::io::ColumnNumber, const std::string&) override {
    has_errors_ = true;
  }
  bool has_errors() const { return has_errors_; }

 private:
  bool has_errors_ = false;
};

// Reads a text once from its beginning to its end, or to the first mistake.
class FieldReader {
 public:
  explicit FieldReader(absl::string_view text)
      : stream_(text.data(), static_cast<int>(text.size())),
        tokenizer_(&stream_, &errors_) {
    checked_.text = std::string(text);
    line_begins_ = {0};
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') line_begins_.push_back(i + 1);
    }
    // As TextFormat.
    tokenizer_.set_allow_f_after_float(true);
    tokenizer_.set_comment_style(Tokenizer::SH_COMMENT_STYLE);
    tokenizer_.set_require_space_after_number(false);
    tokenizer_.set_allow_multiline_strings(true);
  }

  JobFields Read(const pb::Descriptor& type) && {
    tokenizer_.Next();
    messages_.push_back({&type, "the job"});
    ReadFields();
    return std::move(checked_);
  }

 private:
  struct Message {
    const pb::Descriptor* type;
    std::string field;
  };

  const Tokenizer::Token& token() { return tokenizer_.current(); }
  bool IsAt(absl::string_view symbol) { return token().text == symbol; }

  // Passes the token if it is this symbol.
  bool Pass(absl::string_view symbol) {
    if (!IsAt(symbol)) return false;
    tokenizer_.Next();
    return true;
  }

  bool Refuse(int line, int column, std::string message) {
    checked_.mistake = {line, column, std::move(message)};
    return false;
  }

  // "optimizer.adamw"; "the job" outside of all messages.
  std::string Path(size_t message_count) const {
    if (message_count <= 1) return messages_.front().field;
    std::vector<absl::string_view> fields;
    for (size_t i = 1; i < message_count; ++i) {
      fields.push_back(messages_[i].field);
    }
    return absl::StrJoin(fields, ".");
  }

  // The functions below return false where reading ends: at a mistake, or at
  // what they do not expect.

  bool ReadFields() {
    while (token().type == Tokenizer::TYPE_IDENTIFIER) {
      if (!ReadField()) return false;
      while (Pass(";") || Pass(",")) {
      }
    }
    return !errors_.has_errors();
  }

  bool ReadField() {
    const Tokenizer::Token name = token();
    const pb::Descriptor& type = *messages_.back().type;
    const pb::FieldDescriptor* const field = type.FindFieldByName(name.text);
    if (field == nullptr) {
      return Refuse(
          name.line, name.column,
          absl::StrCat(Path(messages_.size()), " has no field named \"",
                       name.text, "\"", PlaceOf(name.text)));
    }
    tokenizer_.Next();
    Pass(":");
    if (!Pass("[")) return ReadValue(*field);
    if (Pass("]")) return true;
    do {
      if (!ReadValue(*field)) return false;
    } while (Pass(","));
    return Pass("]");
  }

  bool ReadValue(const pb::FieldDescriptor& field) {
    if (field.message_type() != nullptr) {
      return ReadMessage(field.name(), *field.message_type());
    }
    if (field.enum_type() != nullptr) return ReadEnum(field);
    Pass("-");
    if (token().type == Tokenizer::TYPE_STRING) {
      while (token().type == Tokenizer::TYPE_STRING) tokenizer_.Next();
      return true;
    }
    const bool is_scalar = token().type == Tokenizer::TYPE_IDENTIFIER ||
                           token().type == Tokenizer::TYPE_INTEGER ||
                           token().type == Tokenizer::TYPE_FLOAT;
    if (is_scalar) tokenizer_.Next();
    return is_scalar;
  }

  bool ReadMessage(const std::string& field, const pb::Descriptor& type) {
    const Tokenizer::Token opening = token();
    const bool has_braces = Pass("{");
    if (!has_braces && !Pass("<")) return false;
    if (messages_.size() == kMessageDepthMax) {
      return Refuse(opening.line, opening.column,
                    absl::StrCat("messages are nested deeper than ",
                                 kMessageDepthMax, "; expected fewer levels"));
    }
    messages_.push_back({&type, field});
    const bool was_read = ReadFields();
    messages_.pop_back();
    return was_read && Pass(has_braces ? "}" : ">");
  }

  bool ReadEnum(const pb::FieldDescriptor& field) {
    const pb::EnumDescriptor& type = *field.enum_type();
    const Tokenizer::Token first = token();
    if (first.type == Tokenizer::TYPE_END ||
        (first.type == Tokenizer::TYPE_SYMBOL && first.text != "-")) {
      return false;
    }
    Tokenizer::Token last = first;
    std::string value = first.text;
    tokenizer_.Next();
    // A number below 0, and a name with "-" in it.
    while (token().type != Tokenizer::TYPE_END && token().line == last.line &&
           token().column == last.end_column &&
           (IsAt("-") || last.text == "-")) {
      absl::StrAppend(&value, token().text);
      last = token();
      tokenizer_.Next();
    }
    if (first.type == Tokenizer::TYPE_STRING) {
      Tokenizer::ParseString(first.text, &value);
    } else if (type.FindValueByName(value) != nullptr) {
      return true;
    }
    const pb::EnumValueDescriptor* const found = FindNumberOrName(type, value);
    if (found == nullptr) {
      const std::vector<absl::string_view> names = ValueNames(type);
      std::string hint = DidYouMean(value, names);
      if (hint.empty()) {
        hint = absl::StrCat("; expected one of ", absl::StrJoin(names, ", "));
      }
      return Refuse(first.line, first.column,
                    absl::StrCat(Path(messages_.size()), ": ", field.name(),
                                 " has no value \"", value, "\"", hint));
    }
    Replace(first, last, *found);
    return true;
  }

  static const pb::EnumValueDescriptor* FindNumberOrName(
      const pb::EnumDescriptor& type, const std::string& value) {
    int number = 0;
    if (absl::SimpleAtoi(value, &number)) {
      return type.FindValueByNumber(number);
    }
    return FindEnumValue(type, value);
  }

  // Writes the value over tokens of one line, in the same width. Its number is
  // shorter than every way to write its name.
  void Replace(const Tokenizer::Token& first, const Tokenizer::Token& last,
               const pb::EnumValueDescriptor& value) {
    const size_t begin = OffsetOf(first.line, first.column);
    const size_t end = OffsetOf(last.line, last.end_column);
    std::string written = value.name();
    if (written.size() > end - begin) written = absl::StrCat(value.number());
    if (written.size() > end - begin) return;
    written.resize(end - begin, ' ');
    checked_.text.replace(begin, end - begin, written);
  }

  size_t OffsetOf(int line, int column) const {
    size_t offset = line_begins_[line];
    for (int at = 0; at < column; ++offset) {
      at += checked_.text[offset] == '\t' ? 8 - at % 8 : 1;
    }
    return offset;
  }

  // Where a field that the innermost message does not have belongs, or what was
  // probably meant.
  std::string PlaceOf(const std::string& name) const {
    for (size_t i = messages_.size() - 1; i > 0; --i) {
      const Message& outer = messages_[i - 1];
      if (outer.type->FindFieldByName(name) == nullptr) continue;
      return absl::StrCat(
          "; it is a field of ", Path(i), ", beside ", messages_[i].field, ": ",
          i == 1 ? "" : absl::StrCat(outer.field, " { "), messages_[i].field,
          " { ... } ", name, ": ...", i == 1 ? "" : " }");
    }
    const pb::Descriptor& type = *messages_.back().type;
    const std::vector<absl::string_view> names = FieldNames(type);
    const std::string suggestion = DidYouMean(name, names);
    if (!suggestion.empty()) return suggestion;
    const std::vector<std::string> inner = InnerPlaces(type, name);
    if (!inner.empty()) {
      return absl::StrCat("; it is a field of ", absl::StrJoin(inner, ", "));
    }
    for (const absl::string_view known : names) {
      const bool is_part = absl::StartsWith(known, absl::StrCat(name, "_")) ||
                           absl::EndsWith(known, absl::StrCat("_", name));
      if (is_part) return absl::StrCat("; did you mean \"", known, "\"?");
    }
    return absl::StrCat("; it has ", absl::StrJoin(names, ", "));
  }

  // Fields of `type` whose messages have a field of this name: the first few.
  std::vector<std::string> InnerPlaces(const pb::Descriptor& type,
                                       const std::string& name) const {
    std::vector<std::string> places;
    const std::string outer =
        messages_.size() <= 1 ? "" : absl::StrCat(Path(messages_.size()), ".");
    for (int i = 0; i < type.field_count(); ++i) {
      const pb::FieldDescriptor& field = *type.field(i);
      const bool has_it =
          field.message_type() != nullptr &&
          field.message_type()->FindFieldByName(name) != nullptr;
      if (has_it) places.push_back(absl::StrCat(outer, field.name()));
    }
    if (places.size() > kPlaceCountMax) places.resize(kPlaceCountMax);
    return places;
  }

  JobFields checked_;
  std::vector<size_t> line_begins_;  // Offsets.
  NoErrors errors_;
  pb::io::ArrayInputStream stream_;
  Tokenizer tokenizer_;
  // Those that are open, from the outermost.
  std::vector<Message> messages_;
};

}  // namespace

JobFields CheckJobFields(absl::string_view text,
                         const google::protobuf::Descriptor& type) {
  return FieldReader(text).Read(type);
}

}  // namespace muster
