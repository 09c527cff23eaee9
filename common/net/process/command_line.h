#ifndef COMMON_NET_PROCESS_COMMAND_LINE_H_
#define COMMON_NET_PROCESS_COMMAND_LINE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace muster {

// What a program says about itself in --help.
struct ProgramInfo {
  std::string name;      // "worker"
  std::string summary;   // One sentence or a few.
  std::string usage;     // "worker [--job=FILE] [flags]"
  std::string examples;  // Lines, ready to print.

  // The flags of Muster's own that it knows, in the order of --help. Flags that
  // a user's program defines for itself are known without being named here.
  std::vector<std::string> flags;
};

// The flags themselves are absl flags and hold their values; this is the rest.
struct CommandLine {
  bool help = false;     // --help
  bool version = false;  // --version

  // Every --set name=value; a later one wins.
  std::map<std::string, std::string> settings;

  // Everything after "--".
  std::vector<std::string> arguments;
};

// Sets the process' absl flags from the environment, where MUSTER_THREADS
// stands for --threads, and then from `arguments` (argv without the program):
// --name=value, --name value, --name and --noname for yes and no.
//
// Differs from absl::ParseCommandLine in that errors come back, repeated --set
// adds up, and flags that are linked in but mean nothing to `program` are
// unknown. Not thread-safe.
//
//   kInvalidArgument   an unknown flag (with the nearest that is known), a
//                      value that its flag cannot hold, or an argument that is
//                      no flag before "--" (with the flag it was probably for)
absl::StatusOr<CommandLine> ParseArguments(
    const ProgramInfo& program, absl::Span<const std::string> arguments);

// The text of --help: what the program is for, how it is started, and each flag
// with its default.
std::string HelpText(const ProgramInfo& program);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_COMMAND_LINE_H_
