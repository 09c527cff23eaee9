#ifndef COMMON_NET_PROCESS_COMMAND_LINE_H_
#define COMMON_NET_PROCESS_COMMAND_LINE_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/net/process/program_info.h"

namespace muster {

// Returns an error message for a setting that is not in `declared`. The message
// suggests the most similar name and lists all declared names.
std::string UnknownSetting(absl::string_view name,
                           const std::map<std::string, std::string>& declared);

// One flag as --help, the manual page and shell completion describe it.
struct FlagDescription {
  std::string name;           // "threads"
  std::string default_value;  // Empty if there is none.
  std::string text;
  bool is_switch = false;    // --name and --noname, without a value.
  bool takes_value = false;  // False for switches, and for --version.
};

struct TopicDescription {
  std::string title;
  std::vector<FlagDescription> flags;
};

// Returns every absl flag that `program` accepts, by name: the flags that it
// lists, and those that neither Muster nor Abseil defines. The flags belong to
// Abseil and live as long as the process.
std::map<std::string, absl::CommandLineFlag*> KnownFlags(
    const ProgramInfo& program);

// Returns every flag that `program` uses, by topic: first the program's topics,
// then the flags that a user's program defines, then the built-in flags
// (--help, --set).
std::vector<TopicDescription> DescribeFlags(const ProgramInfo& program);

// Returns the names of the flags that the command line parser handles itself.
std::vector<std::string> BuiltinFlagNames();

enum class HelpFormat { kText, kMan, kBash };

// The parts of a command line other than flags. Flags are absl flags, which
// hold their values.
struct CommandLine {
  std::optional<HelpFormat> help;      // --help, --help=man, --help=bash
  bool version = false;                // --version
  std::optional<std::string> explain;  // --explain, --explain=NAME

  // The values of --set name=value, of which the last counts, and the defaults
  // of settings that the program declares.
  std::map<std::string, std::string> settings;

  // Everything after "--".
  std::vector<std::string> arguments;
};

// Sets the process' absl flags: first from the environment (MUSTER_THREADS sets
// --threads), then from `arguments` (argv without the program). Accepts
// --name=value, --name value, --name and --noname for true and false, and
// --flagfile=FILE. A flag file has one flag on each line.
//
// Differs from absl::ParseCommandLine: errors are returned, --set may be
// repeated, and flags that are linked in but not listed by `program` are
// unknown. Not thread-safe.
//
//   kInvalidArgument   an unknown flag or setting (with the most similar known
//                      one), a value that its flag cannot hold, an argument
//                      before "--" that is not a flag (with the flag that was
//                      probably meant), or a mistake in a flag file (with the
//                      line)
//   others             as ReadSmallFile(), for a flag file
absl::StatusOr<CommandLine> ParseArguments(
    const ProgramInfo& program, absl::Span<const std::string> arguments);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_COMMAND_LINE_H_
