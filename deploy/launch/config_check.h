#ifndef DEPLOY_LAUNCH_CONFIG_CHECK_H_
#define DEPLOY_LAUNCH_CONFIG_CHECK_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "deploy/launch/task_plan.h"

namespace muster {

// Replaces this process by the task that leads the plan's job, with
// --check_config, so that the job is checked as where it runs. Does not return
// if all is well.
//   kInvalidArgument  the plan has a program, which launch cannot check
//   others            as PlanTasks(), and from starting the executable
absl::Status BecomeConfigCheck(
    ClusterPlan plan, bool checks_data,
    absl::FunctionRef<absl::StatusOr<std::string>(absl::string_view name)>
        find_executable);

// Returns the path of a file with this text, in memory, which this process and
// what it becomes can read.
//   others  from the system
absl::StatusOr<std::string> FileInMemory(const std::string& name,
                                         const std::string& text);

}  // namespace muster

#endif  // DEPLOY_LAUNCH_CONFIG_CHECK_H_
