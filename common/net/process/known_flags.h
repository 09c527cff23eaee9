#ifndef COMMON_NET_PROCESS_KNOWN_FLAGS_H_
#define COMMON_NET_PROCESS_KNOWN_FLAGS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "common/net/process/program_info.h"

namespace muster {

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

}  // namespace muster

#endif  // COMMON_NET_PROCESS_KNOWN_FLAGS_H_
