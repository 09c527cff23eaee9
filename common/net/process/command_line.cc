#include "common/net/process/command_line.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "common/core/base/did_you_mean.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

constexpr absl::string_view kEnvironmentPrefix = "MUSTER_";
constexpr size_t kHelpWidth = 76;

// These are words of the parser, not absl flags, because Abseil's own
// parser defines flags of the same names in programs that link it.
constexpr absl::string_view kBuiltinFlags[] = {"help", "version", "set"};

// Where a flag was defined tells whose it is.
bool IsAbseils(const absl::CommandLineFlag& flag) {
  return absl::StrContains(flag.Filename(), "absl/");
}
bool IsMusters(const absl::CommandLineFlag& flag) {
  return absl::EndsWith(flag.Filename(), "common/net/process/task_options.cc");
}

// Every flag that `program` knows, by name.
std::map<std::string, absl::CommandLineFlag*> KnownFlags(
    const ProgramInfo& program) {
  std::map<std::string, absl::CommandLineFlag*> known;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    const bool named = std::find(program.flags.begin(), program.flags.end(),
                                 name) != program.flags.end();
    const bool users = !IsMusters(*flag) && !IsAbseils(*flag);
    if (named || users) known.emplace(std::string(name), flag);
  }
  return known;
}

absl::Status SetFlag(absl::CommandLineFlag* flag, absl::string_view value,
                     absl::string_view as_written) {
  std::string error;
  if (flag->ParseFrom(value, &error)) return absl::OkStatus();
  if (flag->IsOfType<absl::Duration>()) {
    return absl::InvalidArgumentError(
        absl::StrCat(as_written, ": expected a duration with its unit, as in ",
                     "500ms, 10s, 5m or 1h30m"));
  }
  return absl::InvalidArgumentError(absl::StrCat(as_written, ": ", error));
}

absl::Status AddSetting(absl::string_view text, CommandLine* line) {
  const size_t equals = text.find('=');
  if (equals == absl::string_view::npos || equals == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--set ", text, ": write --set name=value"));
  }
  line->settings[std::string(text.substr(0, equals))] =
      std::string(text.substr(equals + 1));
  return absl::OkStatus();
}

// Walks through the arguments once.
class Parser {
 public:
  Parser(const ProgramInfo& program, absl::Span<const std::string> arguments)
      : program_(program), flags_(KnownFlags(program)), arguments_(arguments) {}

  absl::StatusOr<CommandLine> Run() {
    RETURN_IF_ERROR(ReadEnvironment());
    while (next_ < arguments_.size()) {
      const std::string& argument = arguments_[next_++];
      if (argument == "--") {
        line_.arguments.insert(line_.arguments.end(),
                               arguments_.begin() + next_, arguments_.end());
        break;
      }
      if (!absl::StartsWith(argument, "-") || argument == "-") {
        return StrayArgument(argument);
      }
      RETURN_IF_ERROR(ReadFlag(argument));
    }
    return std::move(line_);
  }

 private:
  absl::Status ReadEnvironment() {
    for (const auto& [name, flag] : flags_) {
      const std::string variable =
          absl::StrCat(kEnvironmentPrefix, absl::AsciiStrToUpper(name));
      if (const char* value = std::getenv(variable.c_str())) {
        RETURN_IF_ERROR(
            SetFlag(flag, value, absl::StrCat(variable, "=", value)));
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadFlag(absl::string_view argument) {
    absl::string_view name = argument;
    name.remove_prefix(absl::StartsWith(name, "--") ? 2 : 1);
    std::optional<std::string> value;
    if (const size_t equals = name.find('='); equals != name.npos) {
      value = std::string(name.substr(equals + 1));
      name = name.substr(0, equals);
    }
    if (name == "help" || name == "h") {
      line_.help = true;
      return absl::OkStatus();
    }
    if (name == "version") {
      line_.version = true;
      return absl::OkStatus();
    }
    if (name == "set") {
      ASSIGN_OR_RETURN(const std::string setting, ValueOf(argument, value));
      return AddSetting(setting, &line_);
    }
    return ReadAbslFlag(argument, name, value);
  }

  absl::Status ReadAbslFlag(absl::string_view argument, absl::string_view name,
                            const std::optional<std::string>& value) {
    if (const auto it = flags_.find(std::string(name)); it != flags_.end()) {
      if (!value.has_value() && it->second->IsOfType<bool>()) {
        return SetFlag(it->second, "true", argument);
      }
      ASSIGN_OR_RETURN(const std::string text, ValueOf(argument, value));
      return SetFlag(it->second, text, absl::StrCat("--", name, "=", text));
    }
    if (absl::StartsWith(name, "no") && !value.has_value()) {
      const auto it = flags_.find(std::string(name.substr(2)));
      if (it != flags_.end() && it->second->IsOfType<bool>()) {
        return SetFlag(it->second, "false", argument);
      }
    }
    return UnknownFlag(name);
  }

  // The value after "=", or the next argument.
  absl::StatusOr<std::string> ValueOf(absl::string_view argument,
                                      const std::optional<std::string>& value) {
    if (value.has_value()) return *value;
    if (next_ < arguments_.size()) return arguments_[next_++];
    return absl::InvalidArgumentError(
        absl::StrCat(argument, " needs a value: ", argument, "=..."));
  }

  absl::Status StrayArgument(absl::string_view argument) const {
    const std::string problem =
        absl::StrCat("\"", argument.substr(0, 256), "\" is no flag");
    const absl::string_view name = argument.substr(0, argument.find('='));
    std::string meant;
    if (flags_.contains(std::string(name))) {
      meant = absl::StrCat("--", argument);
    } else if (name.size() < argument.size()) {
      meant = absl::StrCat("--set ", argument);
    } else if (flags_.contains("job") && absl::EndsWith(argument, ".job")) {
      meant = absl::StrCat("--job=", argument);
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          problem, ", and ", program_.name, " takes no other arguments"));
    }
    return absl::InvalidArgumentError(
        absl::StrCat(problem, "; did you mean ", meant, "?"));
  }

  absl::Status UnknownFlag(absl::string_view name) const {
    std::vector<absl::string_view> candidates(std::begin(kBuiltinFlags),
                                              std::end(kBuiltinFlags));
    for (const auto& [known, flag] : flags_) candidates.push_back(known);
    return absl::InvalidArgumentError(
        absl::StrCat(program_.name, " has no flag --", name.substr(0, 64),
                     DidYouMean(name, candidates)));
  }

  const ProgramInfo& program_;
  const std::map<std::string, absl::CommandLineFlag*> flags_;
  const absl::Span<const std::string> arguments_;
  size_t next_ = 0;
  CommandLine line_;
};

// `text` as lines that fit, each after `indent`.
std::string Wrap(absl::string_view text, absl::string_view indent) {
  std::string lines;
  size_t column = 0;
  for (absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    if (column > 0 && column + 1 + word.size() > kHelpWidth) {
      absl::StrAppend(&lines, "\n");
      column = 0;
    }
    absl::StrAppend(&lines, column == 0 ? indent : " ", word);
    column += (column == 0 ? indent.size() : 1) + word.size();
  }
  return absl::StrCat(lines, "\n");
}

std::string HelpOnFlag(absl::string_view name,
                       const absl::CommandLineFlag& flag) {
  const std::string value = flag.DefaultValue();
  std::string head = absl::StrCat("  --", name);
  if (flag.IsOfType<bool>()) {
    if (value == "true") head = absl::StrCat("  --no", name);
  } else {
    absl::StrAppend(&head, "=", value.empty() ? "..." : value);
  }
  return absl::StrCat(head, "\n", Wrap(flag.Help(), "      "));
}

}  // namespace

absl::StatusOr<CommandLine> ParseArguments(
    const ProgramInfo& program, absl::Span<const std::string> arguments) {
  return Parser(program, arguments).Run();
}

std::string HelpText(const ProgramInfo& program) {
  std::string text =
      absl::StrCat(Wrap(absl::StrCat(program.name, ": ", program.summary), ""),
                   "\nUsage: ", program.usage, "\n");
  if (!program.examples.empty()) {
    absl::StrAppend(&text, "\nExamples:\n", program.examples);
  }
  absl::StrAppend(&text,
                  "\nFlags, with their defaults. Each can also be set in the "
                  "environment:\nMUSTER_THREADS=4 is --threads=4.\n\n");
  std::map<std::string, absl::CommandLineFlag*> known = KnownFlags(program);
  for (const std::string& name : program.flags) {
    const auto it = known.find(name);
    if (it == known.end()) continue;
    absl::StrAppend(&text, HelpOnFlag(name, *it->second));
    known.erase(it);
  }
  for (const auto& [name, flag] : known) {
    absl::StrAppend(&text, HelpOnFlag(name, *flag));
  }
  absl::StrAppend(&text,
                  "  --set name=value\n      Fills ${name} in the job file. "
                  "May be repeated.\n"
                  "  --version\n      Prints the version.\n");
  return text;
}

}  // namespace muster
