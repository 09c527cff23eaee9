#ifndef COMMON_NET_PROCESS_HELP_H_
#define COMMON_NET_PROCESS_HELP_H_

#include <string>

#include "common/net/process/command_line.h"
#include "common/net/process/program_info.h"

namespace muster {

// Returns what --help, --help=man or --help=bash prints for `program`. All
// three are made from the same flags:
//   kText  what the program does, how it is started, and each flag by topic
//          with its default
//   kMan   a manual page of section 1, for man(1)
//   kBash  commands for bash that complete the names of the flags
std::string Help(const ProgramInfo& program, HelpFormat format);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_HELP_H_
