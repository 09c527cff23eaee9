#include "common/net/process/task_flags.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/net/process/task_flag_table.h"

#define MUSTER_DEFINE_FLAG(type, name, default_value, topic, users, passing, \
                           help)                                             \
  ABSL_FLAG(type, name, default_value, help);
MUSTER_TASK_FLAGS(MUSTER_DEFINE_FLAG);
#undef MUSTER_DEFINE_FLAG

namespace muster {
namespace {

constexpr int kCoordinator = 1;
constexpr int kWorker = 2;
constexpr int kServer = 4;
constexpr int kTrainer = kCoordinator | kWorker;
constexpr int kServing = kWorker | kServer;
constexpr int kAll = kCoordinator | kWorker | kServer;

constexpr absl::string_view kTraining = "What to train";
constexpr absl::string_view kCluster = "The cluster";
constexpr absl::string_view kSecurity = "Security";
constexpr absl::string_view kWaiting = "Waiting and giving up";
constexpr absl::string_view kRecovery = "Lost parameter servers";
constexpr absl::string_view kObservation = "Status pages and logs";
constexpr absl::string_view kTransport = "How tensors are sent";

struct TaskFlag {
  absl::string_view topic;
  absl::string_view name;
  int users;
  FlagPassing passing;
};

#define MUSTER_LIST_FLAG(type, name, default_value, topic, users, passing, \
                         help)                                             \
  {topic, #name, users, FlagPassing::passing},
constexpr TaskFlag kTaskFlags[] = {MUSTER_TASK_FLAGS(MUSTER_LIST_FLAG)};
#undef MUSTER_LIST_FLAG

int BitsOf(FlagUsers users) {
  switch (users) {
    case FlagUsers::kCoordinator:
      return kCoordinator;
    case FlagUsers::kWorker:
      return kWorker;
    case FlagUsers::kServer:
      return kServer;
    case FlagUsers::kAny:
      break;
  }
  return kAll;
}

// Returns the flags for which `is_listed` is true.
template <typename IsListed>
std::vector<FlagTopic> FlagsByTopic(IsListed is_listed) {
  std::vector<FlagTopic> topics;
  for (const TaskFlag& flag : kTaskFlags) {
    if (!is_listed(flag)) continue;
    if (topics.empty() || topics.back().title != flag.topic) {
      topics.push_back({.title = std::string(flag.topic), .flags = {}});
    }
    topics.back().flags.push_back(std::string(flag.name));
  }
  return topics;
}

}  // namespace

std::vector<FlagTopic> TaskFlags(FlagUsers users) {
  return FlagsByTopic([bits = BitsOf(users)](const TaskFlag& flag) {
    return (flag.users & bits) != 0;
  });
}

std::vector<std::string> FlagsOfOtherTasks(FlagUsers users) {
  std::vector<std::string> flags;
  for (const TaskFlag& flag : kTaskFlags) {
    if ((flag.users & BitsOf(users)) == 0) {
      flags.push_back(std::string(flag.name));
    }
  }
  return flags;
}

std::vector<FlagTopic> PassedTaskFlags(FlagPassing passing) {
  return FlagsByTopic(
      [passing](const TaskFlag& flag) { return flag.passing == passing; });
}

}  // namespace muster
