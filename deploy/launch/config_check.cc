#include "deploy/launch/config_check.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"
#include "common/net/process/port_reservation.h"
#include "deploy/launch/task_plan.h"

namespace muster {

absl::Status ExecConfigCheck(
    ClusterPlan plan, bool checks_data,
    absl::FunctionRef<absl::StatusOr<std::string>(absl::string_view name)>
        find_executable) {
  if (!plan.program.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--check_config checks a job, and ", plan.program.front(),
                     " is a program: start it with --check_config itself"));
  }
  // A chief that the user starts separately also needs the job, so the check
  // runs as the chief.
  if (plan.ps_count > 0) plan.with_chief = true;
  std::vector<std::unique_ptr<PortReservation>> reservations;
  std::vector<int> ports;
  for (size_t i = 0; i < TasksOf(plan).size(); ++i) {
    ASSIGN_OR_RETURN(reservations.emplace_back(), PortReservation::Create());
    ports.push_back(reservations.back()->port());
  }
  ASSIGN_OR_RETURN(std::vector<TaskPlan> tasks,
                   PlanTasks(plan, ports, find_executable));
  TaskPlan& leader = tasks.front();
  for (const auto& [name, value] : leader.environment) {
    setenv(name.c_str(), value.c_str(), /*overwrite=*/1);
  }
  leader.arguments.push_back("--check_config");
  if (!checks_data) leader.arguments.push_back("--nocheck_data");
  std::vector<char*> argv;
  for (std::string& word : leader.arguments) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(argv.front(), argv.data());
  return absl::ErrnoToStatus(errno,
                             absl::StrCat("cannot start ", argv.front()));
}

absl::StatusOr<std::string> FileInMemory(const std::string& name,
                                         const std::string& text) {
  const int file = memfd_create(name.c_str(), /*flags=*/0);
  if (file < 0) return absl::ErrnoToStatus(errno, "cannot make a file");
  for (absl::string_view rest = text; !rest.empty();) {
    const ssize_t written = write(file, rest.data(), rest.size());
    if (written < 0) return absl::ErrnoToStatus(errno, "cannot write a file");
    rest.remove_prefix(static_cast<size_t>(written));
  }
  return absl::StrCat("/proc/self/fd/", file);
}

}  // namespace muster
