#include "common/net/process/command_line.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/base/did_you_mean.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/small_file.h"

namespace muster {

std::string UnknownSetting(absl::string_view name,
                           const std::map<std::string, std::string>& declared) {
  if (declared.empty()) return "the program declares no settings";
  std::vector<absl::string_view> names;
  for (const auto& [known, value] : declared) names.push_back(known);
  return absl::StrCat("the program declares no setting \"", name.substr(0, 64),
                      "\", only ", absl::StrJoin(names, ", "),
                      DidYouMean(name, names));
}

namespace {

// True if Abseil defines the flag. The file that defines a flag shows its
// owner.
bool IsAbseils(const absl::CommandLineFlag& flag) {
  return absl::StrContains(flag.Filename(), "absl/");
}

// The files that define Muster's flags. An executable may contain several of
// Muster's programs, each with its own flags.
constexpr absl::string_view kFilesOfFlags[] = {
    "common/net/process/task_flags.cc",
    "coordinator/coordinator_program.cc",
    "deploy/launch/engine_mode.cc",
    "deploy/launch/launch_program.cc",
    "deploy/launch/task_counts.cc",
    "deploy/musterctl/gen_certs.cc",
    "deploy/musterctl/musterctl_program.cc",
};

bool IsMusters(const absl::CommandLineFlag& flag) {
  const std::string file = flag.Filename();
  return std::any_of(
      std::begin(kFilesOfFlags), std::end(kFilesOfFlags),
      [&](absl::string_view known) { return absl::EndsWith(file, known); });
}

FlagDescription Describe(const std::string& name,
                         const absl::CommandLineFlag& flag) {
  const bool is_switch = flag.IsOfType<bool>();
  return {.name = name,
          .default_value = flag.DefaultValue(),
          .text = flag.Help(),
          .is_switch = is_switch,
          .takes_value = !is_switch};
}

TopicDescription BuiltinFlags(const ProgramInfo& program) {
  TopicDescription topic = {
      .title = "The command line",
      .flags = {{.name = "set",
                 .text = program.settings.has_value()
                             ? "name=value: gives one of the settings "
                               "above a value. May be repeated."
                             : "name=value: fills ${name} in the job file. "
                               "May be repeated.",
                 .takes_value = true},
                {.name = "flagfile",
                 .text = "Reads flags from this file, one on each line. "
                         "Empty lines and lines that begin with # are "
                         "skipped. Flags further right win.",
                 .takes_value = true},
                {.name = "help",
                 .text = "Prints this text. --help=man prints a manual "
                         "page, --help=bash commands that let bash "
                         "complete the flags."},
                {.name = "version", .text = "Prints the version."}}};
  if (program.explain != nullptr) {
    topic.flags.push_back(
        {.name = "explain",
         .text = "Prints the fields of a job file; --explain=NAME those of "
                 "this name, as --explain=dense."});
  }
  return topic;
}

}  // namespace

std::map<std::string, absl::CommandLineFlag*> KnownFlags(
    const ProgramInfo& program) {
  std::set<std::string> listed(program.flags_of_others.begin(),
                               program.flags_of_others.end());
  for (const FlagTopic& topic : program.topics) {
    listed.insert(topic.flags.begin(), topic.flags.end());
  }
  std::map<std::string, absl::CommandLineFlag*> known;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    const bool is_users = !IsMusters(*flag) && !IsAbseils(*flag);
    if (is_users || listed.contains(std::string(name))) {
      known.emplace(std::string(name), flag);
    }
  }
  return known;
}

std::vector<TopicDescription> DescribeFlags(const ProgramInfo& program) {
  std::map<std::string, absl::CommandLineFlag*> known = KnownFlags(program);
  std::vector<TopicDescription> topics;
  for (const FlagTopic& topic : program.topics) {
    TopicDescription described = {.title = topic.title, .flags = {}};
    for (const std::string& name : topic.flags) {
      const auto it = known.find(name);
      if (it == known.end()) continue;
      described.flags.push_back(Describe(name, *it->second));
      known.erase(it);
    }
    topics.push_back(std::move(described));
  }
  for (const std::string& name : program.flags_of_others) known.erase(name);
  if (!known.empty()) {
    TopicDescription own = {.title = "Flags of this program", .flags = {}};
    for (const auto& [name, flag] : known) {
      own.flags.push_back(Describe(name, *flag));
    }
    topics.push_back(std::move(own));
  }
  topics.push_back(BuiltinFlags(program));
  return topics;
}

std::vector<std::string> BuiltinFlagNames() {
  return {"set", "flagfile", "help", "version"};
}

namespace {

constexpr absl::string_view kEnvironmentPrefix = "MUSTER_";

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

// Reads the environment, then lists of arguments: the command line, and each
// line of a flag file.
class Parser {
 public:
  explicit Parser(const ProgramInfo& program)
      : program_(program), flags_(KnownFlags(program)) {
    if (!program.settings.has_value()) return;
    for (const Setting& setting : *program.settings) {
      line_.settings[setting.name] = setting.default_value;
    }
  }

  absl::StatusOr<CommandLine> Run(absl::Span<const std::string> arguments) {
    RETURN_IF_ERROR(ReadEnvironment());
    RETURN_IF_ERROR(ReadArguments(arguments));
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

  absl::Status ReadArguments(absl::Span<const std::string> arguments) {
    arguments_ = arguments;
    next_ = 0;
    while (next_ < arguments_.size()) {
      const std::string& argument = arguments_[next_++];
      if (argument == "--") {
        line_.arguments.insert(line_.arguments.end(),
                               arguments_.begin() + next_, arguments_.end());
        break;
      }
      if (!absl::StartsWith(argument, "-") || argument == "-") {
        return UnexpectedArgument(argument);
      }
      RETURN_IF_ERROR(ReadFlag(argument));
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
    if (name == "help" || name == "h") return ReadHelp(value.value_or(""));
    if (name == "version") {
      line_.version = true;
      return absl::OkStatus();
    }
    if (name == "explain" && program_.explain != nullptr) {
      line_.explain = value.value_or("");
      return absl::OkStatus();
    }
    if (name == "set") {
      ASSIGN_OR_RETURN(const std::string setting, ValueOf(argument, value));
      return AddSetting(setting);
    }
    if (name == "flagfile") {
      ASSIGN_OR_RETURN(const std::string path, ValueOf(argument, value));
      return ReadFlagFile(path);
    }
    return ReadAbslFlag(argument, name, value);
  }

  absl::Status ReadHelp(absl::string_view format) {
    if (format.empty()) {
      line_.help = HelpFormat::kText;
    } else if (format == "man") {
      line_.help = HelpFormat::kMan;
    } else if (format == "bash") {
      line_.help = HelpFormat::kBash;
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          "--help=", format, ": --help, --help=man or --help=bash"));
    }
    return absl::OkStatus();
  }

  absl::Status AddSetting(absl::string_view text) {
    const size_t equals = text.find('=');
    if (equals == absl::string_view::npos || equals == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--set ", text, ": write --set name=value"));
    }
    const std::string name(text.substr(0, equals));
    if (program_.settings.has_value() && !line_.settings.contains(name)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--set ", text, ": ", UnknownSetting(name, line_.settings)));
    }
    line_.settings[name] = std::string(text.substr(equals + 1));
    return absl::OkStatus();
  }

  absl::Status ReadFlagFile(const std::string& path) {
    if (in_flag_file_) {
      return absl::InvalidArgumentError(
          "--flagfile: a flag file cannot name another one");
    }
    const absl::StatusOr<std::string> lines = ReadSmallFile(path);
    if (!lines.ok()) {
      return absl::Status(
          lines.status().code(),
          absl::StrCat("--flagfile: ", lines.status().message()));
    }
    const absl::Span<const std::string> arguments = arguments_;
    const size_t next = next_;
    in_flag_file_ = true;
    int number = 0;
    for (const absl::string_view text : absl::StrSplit(*lines, '\n')) {
      ++number;
      const absl::string_view line = absl::StripAsciiWhitespace(text);
      if (line.empty() || absl::StartsWith(line, "#")) continue;
      const absl::Status status = ReadArguments(WordsOf(line));
      if (!status.ok()) {
        return absl::Status(status.code(), absl::StrCat(path, ":", number, ": ",
                                                        status.message()));
      }
    }
    in_flag_file_ = false;
    arguments_ = arguments;
    next_ = next;
    return absl::OkStatus();
  }

  // Splits a line of a flag file. "--name value" is two arguments; every other
  // line is one.
  static std::vector<std::string> WordsOf(absl::string_view line) {
    const size_t end = line.find_first_of("= \t");
    if (end == line.npos || line[end] == '=') return {std::string(line)};
    return {std::string(line.substr(0, end)),
            std::string(absl::StripLeadingAsciiWhitespace(line.substr(end)))};
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

  // Returns the value after "=", or the next argument.
  absl::StatusOr<std::string> ValueOf(absl::string_view argument,
                                      const std::optional<std::string>& value) {
    if (value.has_value()) return *value;
    if (next_ < arguments_.size()) return arguments_[next_++];
    return absl::InvalidArgumentError(
        absl::StrCat(argument, " needs a value: ", argument, "=..."));
  }

  absl::Status UnexpectedArgument(absl::string_view argument) const {
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
    const std::vector<std::string> builtin = BuiltinFlagNames();
    std::vector<absl::string_view> candidates(builtin.begin(), builtin.end());
    if (program_.explain != nullptr) candidates.push_back("explain");
    for (const auto& [known, flag] : flags_) candidates.push_back(known);
    return absl::InvalidArgumentError(
        absl::StrCat(program_.name, " has no flag --", name.substr(0, 64),
                     DidYouMean(name, candidates)));
  }

  const ProgramInfo& program_;
  const std::map<std::string, absl::CommandLineFlag*> flags_;
  absl::Span<const std::string> arguments_;  // The list that is being read.
  size_t next_ = 0;
  bool in_flag_file_ = false;
  CommandLine line_;
};

}  // namespace

absl::StatusOr<CommandLine> ParseArguments(
    const ProgramInfo& program, absl::Span<const std::string> arguments) {
  return Parser(program).Run(arguments);
}

}  // namespace muster
