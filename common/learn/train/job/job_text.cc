#include "common/learn/train/job/job_text.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "common/core/base/did_you_mean.h"
#include "common/core/base/status_macros.h"
#include "common/learn/train/job/job_canonical.h"
#include "common/learn/train/job/job_fields.h"
#include "common/learn/train/job/job_schema.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

namespace pb = google::protobuf;

// A ${name} in a job's text.
struct Placeholder {
  size_t begin = 0;  // Of the '$'.
  size_t end = 0;    // Behind the '}'.
  int line = 0;      // From 0, as column.
  int column = 0;
  bool in_string = false;
  bool in_path = false;  // In a string that names files or a folder.
  std::string name;
};

// The fields whose strings name files or a folder.
constexpr absl::string_view kPathFields[] = {
    "path",           "images",     "labels",         "directory",
    "features",       "cache_file", "filename",       "log_dir",
    "filepath",       "backup_dir", "default",        "recovery_dir",
    "checkpoint_dir", "keras",      "vocabulary_file"};

std::string Position(absl::string_view file, int line, int column) {
  return absl::StrCat(file, ":", line + 1, ":", column + 1, ": ");
}

// Finds the ${name}s and checks that brackets are closed, keeping away from
// comments.
class PlaceholderScanner {
 public:
  PlaceholderScanner(absl::string_view text, absl::string_view file_name)
      : text_(text), file_name_(file_name) {}

  absl::StatusOr<std::vector<Placeholder>> Scan() {
    std::vector<Placeholder> found;
    while (at_ < text_.size()) {
      if (text_.substr(at_, 2) == "${" && !in_comment_) {
        ASSIGN_OR_RETURN(found.emplace_back(), ReadPlaceholder());
      } else {
        RETURN_IF_ERROR(Step());
      }
    }
    if (open_.empty()) return found;
    const Bracket& bracket = open_.back();
    return absl::InvalidArgumentError(
        absl::StrCat(Position(file_name_, bracket.line, bracket.column),
                     "this \"", std::string(1, bracket.text),
                     "\" is not closed: the file ends without ", "its \"",
                     std::string(1, ClosingOf(bracket.text)), "\""));
  }

 private:
  struct Bracket {
    char text = 0;
    int line = 0;
    int column = 0;
  };

  static char ClosingOf(char opening) {
    return opening == '{' ? '}' : opening == '[' ? ']' : '>';
  }

  // What the character means outside of strings and comments.
  absl::Status StepOutside(char c) {
    const bool is_word = absl::ascii_isalnum(c) || c == '_';
    if (is_word) {
      if (!in_word_) word_.clear();
      word_.push_back(c);
    }
    in_word_ = is_word;
    const int column = static_cast<int>(at_ - line_begin_);
    if (c == '#') {
      in_comment_ = true;
    } else if (c == '"' || c == '\'') {
      quote_ = c;
    } else if (c == '{' || c == '[' || c == '<') {
      open_.push_back({c, line_, column});
    } else if (c == '}' || c == ']' || c == '>') {
      return Close(c, column);
    }
    return absl::OkStatus();
  }

  absl::Status Close(char c, int column) {
    const std::string place = Position(file_name_, line_, column);
    if (open_.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          place, "this \"", std::string(1, c),
          "\" closes nothing: there is one too many, or an opening one is "
          "missing"));
    }
    const Bracket opening = open_.back();
    open_.pop_back();
    if (ClosingOf(opening.text) == c) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        place, "expected \"", std::string(1, ClosingOf(opening.text)),
        "\" for the \"", std::string(1, opening.text), "\" of line ",
        opening.line + 1, ", got \"", std::string(1, c), "\""));
  }

  // Passes one character, two if the first escapes the second.
  absl::Status Step() {
    const char c = text_[at_];
    if (c == '\n') {
      in_comment_ = false;
      quote_ = 0;
      ++line_;
      line_begin_ = at_ + 1;
    } else if (in_comment_) {
      // Nothing matters until the line ends.
    } else if (quote_ != 0) {
      if (c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
      if (c == quote_) quote_ = 0;
    } else {
      RETURN_IF_ERROR(StepOutside(c));
    }
    ++at_;
    return absl::OkStatus();
  }

  absl::StatusOr<Placeholder> ReadPlaceholder() {
    Placeholder placeholder;
    placeholder.begin = at_;
    placeholder.line = line_;
    placeholder.column = static_cast<int>(at_ - line_begin_);
    placeholder.in_string = quote_ != 0;
    placeholder.in_path =
        placeholder.in_string &&
        std::count(std::begin(kPathFields), std::end(kPathFields), word_) > 0;
    size_t end = at_ + 2;
    while (end < text_.size() &&
           (absl::ascii_isalnum(text_[end]) || text_[end] == '_')) {
      ++end;
    }
    placeholder.name = std::string(text_.substr(at_ + 2, end - at_ - 2));
    const bool is_closed = end < text_.size() && text_[end] == '}';
    if (!is_closed || placeholder.name.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          Position(file_name_, placeholder.line, placeholder.column),
          "expected ${name}, with letters, digits and underscores"));
    }
    at_ = placeholder.end = end + 1;
    return placeholder;
  }

  const absl::string_view text_;
  const absl::string_view file_name_;
  size_t at_ = 0;
  int line_ = 0;
  size_t line_begin_ = 0;
  char quote_ = 0;
  bool in_comment_ = false;
  // The last word outside of strings: the name of a string's field.
  std::string word_;
  bool in_word_ = false;
  std::vector<Bracket> open_;
};

// Keeps the first error of protobuf's parser.
class FirstError final : public pb::io::ErrorCollector {
 public:
  void AddError(int line, pb::io::ColumnNumber column,
                const std::string& message) override {
    if (found_) return;
    found_ = true;
    line_ = line;
    column_ = column;
    message_ = message;
  }

  int line() const { return line_; }
  int column() const { return column_; }
  const std::string& message() const { return message_; }

 private:
  bool found_ = false;
  int line_ = 0;
  int column_ = 0;
  std::string message_;
};

// `column_of` maps a place in the text that is parsed to one in the file.
template <typename ColumnOf>
absl::Status ParseInto(const std::string& text, absl::string_view file_name,
                       ColumnOf column_of, pb::Message* job,
                       pb::TextFormat::ParseInfoTree* locations = nullptr) {
  const auto error_at = [&](int line, int column, absl::string_view message) {
    line = std::max(line, 0);
    column = column_of(line, std::max(column, 0));
    return absl::InvalidArgumentError(
        absl::StrCat(Position(file_name, line, column), message));
  };
  const JobFields fields = CheckJobFields(text, *job->GetDescriptor());
  if (fields.mistake.has_value()) {
    return error_at(fields.mistake->line, fields.mistake->column,
                    fields.mistake->message);
  }
  FirstError error;
  pb::TextFormat::Parser parser;
  parser.WriteLocationsTo(locations);
  parser.RecordErrorsTo(&error);
  if (parser.ParseFromString(fields.text, job)) return absl::OkStatus();
  return error_at(error.line(), error.column(), error.message());
}

// The text with a number of the same width in the place of each placeholder
// that stands outside of strings, so that it parses and positions stay.
std::string TextWithDummies(absl::string_view text,
                            const std::vector<Placeholder>& placeholders) {
  std::string dummies(text);
  for (const Placeholder& placeholder : placeholders) {
    if (placeholder.in_string) continue;
    for (size_t i = placeholder.begin; i < placeholder.end; ++i) {
      dummies[i] = i == placeholder.begin ? '0' : ' ';
    }
  }
  return dummies;
}

// The text with values in it, and how its columns relate to the file's.
class Substitution {
 public:
  void Append(absl::string_view text) {
    absl::StrAppend(&text_, text);
    absl::StrAppend(&agreed_text_, text);
  }

  void AppendValue(const Placeholder& placeholder, absl::string_view value) {
    const int length = static_cast<int>(placeholder.end - placeholder.begin);
    absl::StrAppend(&text_, value);
    absl::StrAppend(&agreed_text_,
                    placeholder.in_path
                        ? absl::StrCat("${", placeholder.name, "}")
                        : std::string(value));
    shifts_[placeholder.line].push_back(
        {placeholder.column, length, static_cast<int>(value.size())});
  }

  const std::string& text() const { return text_; }
  const std::string& agreed_text() const { return agreed_text_; }

  // A place inside of a value is where the placeholder begins.
  int ColumnInFile(int line, int column) const {
    const auto shifts = shifts_.find(line);
    if (shifts == shifts_.end()) return column;
    int shift = 0;  // In the file minus in the text.
    for (const Shift& value : shifts->second) {
      if (column + shift < value.column) break;
      if (column + shift < value.column + value.length_in_text) {
        return value.column;
      }
      shift += value.length_in_file - value.length_in_text;
    }
    return column + shift;
  }

 private:
  struct Shift {
    int column;  // In the file.
    int length_in_file;
    int length_in_text;
  };
  std::string text_;
  std::string agreed_text_;
  std::map<int, std::vector<Shift>> shifts_;  // By line.
};

std::optional<std::string> FindPlaceholderValue(
    const std::string& name, const proto::TrainingJob& declarations,
    const JobSettings& settings, const JobSettings& builtins) {
  if (const auto found = settings.find(name); found != settings.end()) {
    return found->second;
  }
  if (const auto found = builtins.find(name); found != builtins.end()) {
    return found->second;
  }
  for (const proto::JobVariable& variable : declarations.variables()) {
    if (variable.name() != name || !variable.has_default_()) continue;
    std::string value = variable.default_();
    for (const auto& builtin : builtins) {
      absl::StrReplaceAll(
          {{absl::StrCat("${", builtin.first, "}"), builtin.second}}, &value);
    }
    return value;
  }
  return std::nullopt;
}

absl::StatusOr<Substitution> Substitute(
    absl::string_view text, absl::string_view file_name,
    const std::vector<Placeholder>& placeholders,
    const proto::TrainingJob& declarations, const JobSettings& settings,
    const JobSettings& builtins) {
  Substitution substitution;
  size_t copied = 0;
  for (const Placeholder& placeholder : placeholders) {
    const std::optional<std::string> value = FindPlaceholderValue(
        placeholder.name, declarations, settings, builtins);
    if (!value.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          Position(file_name, placeholder.line, placeholder.column), "${",
          placeholder.name, "} has no value; say --set ", placeholder.name,
          "=..., or give it a default: variables { name: \"", placeholder.name,
          "\" default: \"...\" }"));
    }
    // A value is one word; only strings can hold more.
    if (!placeholder.in_string &&
        value->find_first_of("\n{}<>[]#\"'") != std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat(
          Position(file_name, placeholder.line, placeholder.column), "${",
          placeholder.name, "} stands for one number or name here, got \"",
          absl::CEscape(*value), "\""));
    }
    substitution.Append(text.substr(copied, placeholder.begin - copied));
    substitution.AppendValue(
        placeholder, placeholder.in_string ? absl::CEscape(*value) : *value);
    copied = placeholder.end;
  }
  substitution.Append(text.substr(copied));
  return substitution;
}

absl::Status CheckSettingsAreKnown(absl::string_view file_name,
                                   const std::vector<Placeholder>& placeholders,
                                   const proto::TrainingJob& declarations,
                                   const JobSettings& settings) {
  std::set<std::string> known;
  for (const Placeholder& placeholder : placeholders) {
    known.insert(placeholder.name);
  }
  for (const proto::JobVariable& variable : declarations.variables()) {
    known.insert(variable.name());
  }
  for (const auto& setting : settings) {
    if (known.contains(setting.first)) continue;
    const std::vector<absl::string_view> names(known.begin(), known.end());
    return absl::InvalidArgumentError(
        absl::StrCat(file_name, ": --set ", setting.first, "=", setting.second,
                     ": the job has no ${", setting.first, "}",
                     DidYouMean(setting.first, names)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<JobText> ParseJobText(absl::string_view text,
                                     absl::string_view file_name,
                                     const JobSettings& settings,
                                     const JobSettings& builtins) {
  ASSIGN_OR_RETURN(const std::vector<Placeholder> placeholders,
                   PlaceholderScanner(text, file_name).Scan());
  // First without values: that finds the declarations, and errors of structure
  // where they stand in the file.
  const std::unique_ptr<pb::Message> message = NewJobMessage("TrainingJob");
  RETURN_IF_ERROR(ParseInto(
      TextWithDummies(text, placeholders), file_name,
      [](int, int column) { return column; }, message.get()));
  proto::TrainingJob declarations;
  CopyFromKinds(*message, &declarations);
  RETURN_IF_ERROR(
      CheckSettingsAreKnown(file_name, placeholders, declarations, settings));
  ASSIGN_OR_RETURN(const Substitution substitution,
                   Substitute(text, file_name, placeholders, declarations,
                              settings, builtins));
  JobText read;
  RETURN_IF_ERROR(ParseInto(
      substitution.text(), file_name,
      [&](int line, int column) {
        return substitution.ColumnInFile(line, column);
      },
      message.get()));
  CopyFromKinds(*message, &read.job);
  pb::TextFormat::ParseInfoTree locations;
  RETURN_IF_ERROR(ParseInto(
      substitution.agreed_text(), file_name,
      [](int, int column) { return column; }, message.get(), &locations));
  read.agreed = CanonicalForm(*message, &locations);
  return read;
}

}  // namespace muster
