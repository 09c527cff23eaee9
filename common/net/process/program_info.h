#ifndef COMMON_NET_PROCESS_PROGRAM_INFO_H_
#define COMMON_NET_PROCESS_PROGRAM_INFO_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// Flags that --help lists under one heading.
struct FlagTopic {
  std::string title;  // "Recovery"
  std::vector<std::string> flags;
};

// A setting, whose value --set may give.
struct Setting {
  std::string name;
  std::string default_value;
  std::string description;
};

// The command line of a program, and the text of its --help.
struct ProgramInfo {
  std::string name;      // "worker"
  std::string summary;   // One or a few sentences.
  std::string usage;     // "worker [--job=FILE] [flags]"
  std::string examples;  // Lines, ready to print.

  // The flags of Muster that the program uses, in the order of --help. Flags
  // that a user's program defines itself are accepted without being listed
  // here.
  std::vector<FlagTopic> topics;
  // Flags that the program accepts but ignores and does not show, so that all
  // tasks of a cluster can be started with the same flags.
  std::vector<std::string> flags_of_others;

  // Returns the output of --explain (with an empty name) and --explain=NAME.
  // Null if the program has no such flag.
  std::function<absl::StatusOr<std::string>(absl::string_view name)> explain =
      nullptr;

  // The settings that the program declares. Unset if a job file declares them.
  // In this case the command line accepts every --set.
  std::optional<std::vector<Setting>> settings;
};

}  // namespace muster

#endif  // COMMON_NET_PROCESS_PROGRAM_INFO_H_
