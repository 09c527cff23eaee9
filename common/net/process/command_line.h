#ifndef COMMON_NET_PROCESS_COMMAND_LINE_H_
#define COMMON_NET_PROCESS_COMMAND_LINE_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/net/process/program_info.h"

namespace muster {

enum class HelpFormat { kText, kMan, kBash };

// The flags themselves are absl flags and hold their values; this is the rest.
struct CommandLine {
  std::optional<HelpFormat> help;      // --help, --help=man, --help=bash
  bool version = false;                // --version
  std::optional<std::string> explain;  // --explain, --explain=NAME

  // Every --set name=value, a later one wins; and the defaults of settings that
  // the program declares.
  std::map<std::string, std::string> settings;

  // Everything after "--".
  std::vector<std::string> arguments;
};

// Sets the process' absl flags from the environment, where MUSTER_THREADS
// stands for --threads, and then from `arguments` (argv without the program):
// --name=value, --name value, --name and --noname for yes and no, and
// --flagfile=FILE for more of them, one on each line of a file.
//
// Differs from absl::ParseCommandLine in that errors are returned, repeated
// --set adds up, and flags that are linked in but not listed by `program` are
// unknown. Not thread-safe.
//
//   kInvalidArgument   an unknown flag or setting (with the nearest that is
//                      known), a value that its flag cannot hold, an argument
//                      that is no flag before "--" (with the flag it was
//                      probably for), or a mistake in a flag file (with the
//                      line)
//   others             as ReadSmallFile(), for a flag file
absl::StatusOr<CommandLine> ParseArguments(
    const ProgramInfo& program, absl::Span<const std::string> arguments);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_COMMAND_LINE_H_
