#include "common/net/process/help.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/net/process/command_line.h"
#include "common/net/process/exit_code.h"
#include "common/net/process/version.h"

namespace muster {
namespace {

constexpr size_t kHelpWidth = 76;

constexpr absl::string_view kEnvironment =
    "Each flag can also be set in the environment: MUSTER_THREADS=4 is "
    "--threads=4. The command line wins.";

struct ExitStatus {
  ExitCode code;
  absl::string_view meaning;
};

constexpr ExitStatus kExitStatuses[] = {
    {ExitCode::kOk, "The job is done."},
    {ExitCode::kFailure, "The job failed; another try would fail too."},
    {ExitCode::kUsage, "A mistake in the flags, TF_CONFIG or the job file."},
    {ExitCode::kInterrupted, "Ended by SIGINT."},
    {ExitCode::kRestartMe, "Start this task again; the job may continue."},
    {ExitCode::kTerminated, "Ended by SIGTERM."},
};

// Breaks `text` into lines of at most kHelpWidth columns, each after `indent`.
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

// Returns "--threads=0", "--[no]shared_memory" or "--job=...".
std::string Synopsis(const FlagDescription& flag) {
  if (flag.is_switch) return absl::StrCat("--[no]", flag.name);
  if (!flag.takes_value) return absl::StrCat("--", flag.name);
  return absl::StrCat("--", flag.name, "=",
                      flag.default_value.empty() ? "..." : flag.default_value);
}

std::string TextOf(const FlagDescription& flag) {
  if (!flag.is_switch) return flag.text;
  return absl::StrCat(flag.text, " ",
                      flag.default_value == "true" ? "On" : "Off",
                      " by default.");
}

std::string DefaultOf(const Setting& setting) {
  if (setting.default_value.empty()) return setting.description;
  return absl::StrCat(setting.description, " ", setting.default_value,
                      " by default.");
}

std::string HelpText(const ProgramInfo& program) {
  std::string text =
      absl::StrCat(Wrap(absl::StrCat(program.name, ": ", program.summary), ""),
                   "\nUsage: ", program.usage, "\n");
  if (!program.examples.empty()) {
    absl::StrAppend(&text, "\nExamples:\n", program.examples);
  }
  if (program.settings.has_value() && !program.settings->empty()) {
    absl::StrAppend(&text, "\nSettings, as in --set ",
                    program.settings->front().name, "=...:\n");
    for (const Setting& setting : *program.settings) {
      absl::StrAppend(&text, "  ", setting.name, "\n",
                      Wrap(DefaultOf(setting), "      "));
    }
  }
  absl::StrAppend(
      &text, "\n",
      Wrap(absl::StrCat("Flags, with their defaults. ", kEnvironment), ""));
  for (const TopicDescription& topic : DescribeFlags(program)) {
    absl::StrAppend(&text, "\n", topic.title, ":\n");
    for (const FlagDescription& flag : topic.flags) {
      absl::StrAppend(&text, "  ", Synopsis(flag), "\n",
                      Wrap(TextOf(flag), "      "));
    }
  }
  return text;
}

// Escapes `text`, so that roff prints it unchanged.
std::string Roff(absl::string_view text) {
  std::vector<std::string> lines = absl::StrSplit(
      absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}}), '\n');
  for (std::string& line : lines) {
    // roff would interpret such a line as a request.
    if (absl::StartsWith(line, ".") || absl::StartsWith(line, "'")) {
      line.insert(0, "\\&");
    }
  }
  return absl::StrJoin(lines, "\n");
}

std::string Verbatim(absl::string_view heading, absl::string_view text) {
  return absl::StrCat(".SH ", heading, "\n.nf\n",
                      Roff(absl::StripTrailingAsciiWhitespace(text)),
                      "\n.fi\n");
}

std::string RoffItem(absl::string_view term, absl::string_view text) {
  return absl::StrCat(".TP\n\\fB", Roff(term), "\\fR\n", Roff(text), "\n");
}

std::string ManPage(const ProgramInfo& program) {
  // apropos(1) reads "NAME \- description", without a full stop.
  const absl::string_view first_sentence =
      absl::string_view(program.summary).substr(0, program.summary.find(". "));
  std::string page = absl::StrCat(
      ".TH ", absl::AsciiStrToUpper(program.name), " 1 \"\" \"muster ",
      kVersion, "\"\n.SH NAME\n", Roff(program.name), " \\- ",
      Roff(absl::StripSuffix(first_sentence, ".")), "\n",
      Verbatim("SYNOPSIS", program.usage), ".SH DESCRIPTION\n",
      Roff(program.summary), "\n");
  if (program.settings.has_value() && !program.settings->empty()) {
    absl::StrAppend(&page, ".SH SETTINGS\n");
    for (const Setting& setting : *program.settings) {
      absl::StrAppend(&page, RoffItem(setting.name, DefaultOf(setting)));
    }
  }
  absl::StrAppend(&page, ".SH FLAGS\n", Roff(kEnvironment), "\n");
  for (const TopicDescription& topic : DescribeFlags(program)) {
    absl::StrAppend(&page, ".SS ", Roff(topic.title), "\n");
    for (const FlagDescription& flag : topic.flags) {
      absl::StrAppend(&page, RoffItem(Synopsis(flag), TextOf(flag)));
    }
  }
  absl::StrAppend(&page, ".SH EXIT STATUS\n");
  for (const ExitStatus& status : kExitStatuses) {
    absl::StrAppend(&page, RoffItem(absl::StrCat(static_cast<int>(status.code)),
                                    status.meaning));
  }
  if (!program.examples.empty()) {
    absl::StrAppend(&page, Verbatim("EXAMPLES", program.examples));
  }
  return page;
}

std::string BashCompletion(const ProgramInfo& program) {
  std::vector<std::string> words;
  for (const TopicDescription& topic : DescribeFlags(program)) {
    for (const FlagDescription& flag : topic.flags) {
      words.push_back(
          absl::StrCat("--", flag.name, flag.takes_value ? "=" : ""));
      if (flag.is_switch) words.push_back(absl::StrCat("--no", flag.name));
    }
  }
  const std::string function = absl::StrCat(
      "_muster_", absl::StrReplaceAll(program.name, {{"-", "_"}, {".", "_"}}));
  return absl::StrCat(
      function, "() {\n  local word=${COMP_WORDS[COMP_CWORD]}\n",
      "  [[ $word == -* ]] || return 0\n", "  COMPREPLY=($(compgen -W '",
      absl::StrJoin(words, " "), "' -- \"$word\"))\n",
      "  if [[ ${COMPREPLY[0]-} == *= ]]; then compopt -o nospace; fi\n}\n",
      "complete -o default -F ", function, " ", program.name, "\n");
}

}  // namespace

std::string Help(const ProgramInfo& program, HelpFormat format) {
  switch (format) {
    case HelpFormat::kText:
      break;
    case HelpFormat::kMan:
      return ManPage(program);
    case HelpFormat::kBash:
      return BashCompletion(program);
  }
  return HelpText(program);
}

}  // namespace muster
