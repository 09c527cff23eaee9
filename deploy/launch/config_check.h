#ifndef DEPLOY_LAUNCH_CONFIG_CHECK_H_
#define DEPLOY_LAUNCH_CONFIG_CHECK_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "deploy/launch/task_plan.h"

namespace muster {

// Replaces this process with the task that leads the plan's job, with the flag
// --check_config, so that the job is checked by the executable that runs it.
// Returns only if that fails.
//   kInvalidArgument  the plan has a program, which launch cannot check
//   others            as PlanTasks(), or the executable cannot be started
absl::Status ExecConfigCheck(
    ClusterPlan plan, bool checks_data,
    absl::FunctionRef<absl::StatusOr<std::string>(absl::string_view name)>
        find_executable);

// Creates a file in memory with this text and returns its path. This process,
// and a program that it executes, can read the file.
//   others  the system cannot create or write the file
absl::StatusOr<std::string> FileInMemory(const std::string& name,
                                         const std::string& text);

}  // namespace muster

#endif  // DEPLOY_LAUNCH_CONFIG_CHECK_H_
