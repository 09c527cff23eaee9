#ifndef COMMON_NET_CLUSTER_TASK_ID_H_
#define COMMON_NET_CLUSTER_TASK_ID_H_

#include <compare>
#include <ostream>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// The roles of TF_CONFIG. `master` is an old name for the chief.
enum class TaskType { kChief, kWorker, kPs, kEvaluator };

inline constexpr TaskType kTaskTypes[] = {TaskType::kChief, TaskType::kWorker,
                                          TaskType::kPs, TaskType::kEvaluator};

// Returns "chief", "worker", "ps" or "evaluator".
absl::string_view TaskTypeName(TaskType type);

//   kInvalidArgument  no such role; the message lists the roles
absl::StatusOr<TaskType> ParseTaskType(absl::string_view name);

// A task of the cluster. Successive processes of a task differ in their
// Incarnation.
struct TaskId {
  TaskType type = TaskType::kWorker;
  int index = 0;

  // Returns "worker 1". Roles with one task have no number: "chief",
  // "evaluator".
  std::string ToString() const;

  auto operator<=>(const TaskId&) const = default;

  template <typename H>
  friend H AbslHashValue(H state, const TaskId& task) {
    return H::combine(std::move(state), task.type, task.index);
  }
  friend std::ostream& operator<<(std::ostream& out, const TaskId& task) {
    return out << task.ToString();
  }
};

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_TASK_ID_H_
