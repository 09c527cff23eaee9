#ifndef COMMON_NET_PROCESS_TASK_FLAGS_H_
#define COMMON_NET_PROCESS_TASK_FLAGS_H_

#include <string>
#include <vector>

#include "common/net/process/program_info.h"

namespace muster {

// The flags of tasks, which task_flag_table.h lists.

// The roles that an executable can have.
enum class FlagUsers {
  kCoordinator,  // Trains, or evaluates, but does not serve.
  kWorker,       // Trains, evaluates, or serves a coordinator.
  kServer,       // A parameter server.
  kAny,          // All of them.
};

// Returns the flags that tasks of these roles use, by topic, in the order of
// --help.
std::vector<FlagTopic> TaskFlags(FlagUsers users);

// Returns the flags that only tasks of other roles use.
std::vector<std::string> FlagsOfOtherTasks(FlagUsers users);

// The tasks to which `launch` passes a flag from its own command line.
enum class FlagPassing { kNot, kToAll, kToLeader };

// Returns the flags with this `passing`, by topic, in the order of --help.
std::vector<FlagTopic> PassedTaskFlags(FlagPassing passing);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_TASK_FLAGS_H_
