#ifndef COMMON_NET_CLUSTER_ROLE_COUNTS_H_
#define COMMON_NET_CLUSTER_ROLE_COUNTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/net/cluster/task_id.h"

namespace muster {

// The number of tasks of one role.
struct RoleCount {
  TaskType type = TaskType::kWorker;
  int count = 0;  // At least 1.

  bool operator==(const RoleCount&) const = default;
};

// The roles of a cluster in the order in which an engine assigns them to its
// processes. Each role occurs at most once.
using RoleCounts = std::vector<RoleCount>;

// Maximum number of tasks of a cluster that an engine starts.
inline constexpr int kClusterTasksMax = 65536;

// Parses "chief=1,ps=2,worker=4". Omits roles with 0 tasks. Returns no roles
// for a blank text.
//   kInvalidArgument  an unknown role, a role that occurs twice, a count that
//                     is not a whole number or is too high
absl::StatusOr<RoleCounts> ParseRoleCounts(absl::string_view text);

// Returns the number of tasks of all roles.
int TotalCount(const RoleCounts& roles);

// Returns the notation that ParseRoleCounts() reads.
std::string ToString(const RoleCounts& roles);

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_ROLE_COUNTS_H_
