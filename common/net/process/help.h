#ifndef COMMON_NET_PROCESS_HELP_H_
#define COMMON_NET_PROCESS_HELP_H_

#include <string>

#include "common/net/process/command_line.h"
#include "common/net/process/program_info.h"

namespace muster {

// Returns the output of --help, --help=man or --help=bash for `program`. All
// three are generated from the same flags:
//   kText  the purpose and the usage of the program, and its flags by topic,
//          with their defaults
//   kMan   a manual page of section 1, for man(1)
//   kBash  commands for bash that complete the names of the flags
std::string Help(const ProgramInfo& program, HelpFormat format);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_HELP_H_
