#include "coordinator/standby.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/io/storage/disk.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/exit_code.h"
#include "common/net/process/run_lease.h"
#include "coordinator/journal/coordinator_journal.h"
#include "proto/coordinator_journal.pb.h"

namespace muster {

absl::Status CheckStandby(const TaskOptions& options) {
  const bool is_chief =
      !options.config.IsAlone() && options.config.task.type == TaskType::kChief;
  if (!is_chief || !options.config.HasParameterServers()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--standby is for the chief of a cluster with parameter "
                     "servers; this task is ",
                     options.config.task.ToString()));
  }
  if (CoordinatorJournalDir(options).empty()) {
    return absl::InvalidArgumentError(
        "--standby needs the --run_dir of the coordinator that leads the job, "
        "which both must see, and a --coordinator_return_timeout above 0");
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> StandBy(const TaskOptions& options) {
  const bool has_waited = RunLease::AwaitFree({.run_dir = options.run_dir});
  // Without another coordinator this one begins, or continues an earlier run.
  if (!has_waited) return true;
  ASSIGN_OR_RETURN(const std::optional<proto::JournalEnd> end,
                   CoordinatorJournal::ReadEnd(Disk::Real(),
                                               CoordinatorJournalDir(options)));
  const int exit_code = end.has_value()
                            ? end->exit_code()
                            : static_cast<int>(ExitCode::kRestartMe);
  if (exit_code == static_cast<int>(ExitCode::kRestartMe)) {
    LOG(INFO) << "the coordinator that led the job is lost; this one continues "
                 "the job";
    return true;
  }
  if (exit_code == 0) {
    LOG(INFO) << "the job has ended, and this coordinator is not needed";
    return false;
  }
  return WithExitCode(
      absl::AbortedError(absl::StrCat("the job has ended with exit status ",
                                      exit_code, ": ", end->reason())),
      static_cast<ExitCode>(exit_code));
}

}  // namespace muster
