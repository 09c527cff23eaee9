#include "coordinator/standby.h"

#include <signal.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/system/log.h"
#include "common/io/storage/disk.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/exit_code.h"
#include "common/net/process/run_lease.h"
#include "common/net/process/task.h"
#include "common/net/process/train_task.h"
#include "coordinator/journal/coordinator_journal.h"
#include "coordinator/parameter_server_strategy.h"
#include "proto/coordinator_journal.pb.h"

namespace muster {
namespace {

constexpr absl::Duration kPauseMax = absl::Seconds(1);
// How long a standby looks for tasks of a job that has ended.
constexpr absl::Duration kEndedJobTimeout = absl::Seconds(3);

// Returns SIGTERM or SIGINT if one has arrived; otherwise 0.
int PendingSignal() {
  sigset_t pending;
  sigpending(&pending);
  for (const int signal : {SIGTERM, SIGINT}) {
    if (sigismember(&pending, signal) == 1) return signal;
  }
  return 0;
}

absl::Status StoppedBySignal() {
  const bool is_interrupt = PendingSignal() == SIGINT;
  return WithExitCode(
      absl::CancelledError(absl::StrCat("stopped by ",
                                        is_interrupt ? "SIGINT" : "SIGTERM",
                                        " while standing by")),
      is_interrupt ? ExitCode::kInterrupted : ExitCode::kTerminated);
}

void PauseAtRandom() {
  Clock* const clock = Clock::Real();
  const absl::Duration pause =
      kPauseMax * (static_cast<double>(RandomIdentity() % 1000) / 1000);
  absl::Mutex mutex;
  const bool never = false;
  absl::MutexLock lock(&mutex);
  clock->AwaitWithDeadline(&mutex, absl::Condition(&never),
                           clock->Now() + pause);
}

absl::Status StatusOfEnd(const proto::JournalEnd& end) {
  if (end.exit_code() == 0) return absl::OkStatus();
  return WithExitCode(
      absl::AbortedError(absl::StrCat("the job has ended with exit status ",
                                      end.exit_code(), ": ", end.reason())),
      static_cast<ExitCode>(end.exit_code()));
}

}  // namespace

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

absl::StatusOr<bool> StandBy(TaskOptions* options, absl::Status* end) {
  RunLease::Options lease = {.run_dir = options->run_dir};
  bool has_waited = false;
  while (true) {
    const std::optional<RunLease::Vacancy> vacancy =
        RunLease::AwaitVacancy(lease, [] { return PendingSignal() != 0; });
    if (!vacancy.has_value()) return StoppedBySignal();
    if (vacancy->kind == RunLease::Vacancy::Kind::kNoOwner) break;
    has_waited = true;
    lease.stale_lease = vacancy->lease;
    PauseAtRandom();  // So that one of several standbys is the first.
  }
  // Without another coordinator this one begins, or continues an earlier run.
  if (!has_waited) return true;
  ASSIGN_OR_RETURN(const std::optional<proto::JournalEnd> recorded,
                   CoordinatorJournal::ReadEnd(
                       Disk::Real(), CoordinatorJournalDir(*options)));
  if (recorded.has_value() &&
      recorded->exit_code() != static_cast<int>(ExitCode::kRestartMe)) {
    LOG(INFO) << "the job has ended, and this coordinator is not needed";
    *end = StatusOfEnd(*recorded);
    return false;
  }
  options->stale_lease = lease.stale_lease;
  LOG(INFO) << "the coordinator that led the job is lost; this one continues "
               "the job";
  return true;
}

void TellTasksOfEnd(TaskOptions options, const TaskIdentity& identity,
                    Network* network) {
  options.startup_timeout = std::min(options.startup_timeout, kEndedJobTimeout);
  // The journal says how the job has ended.
  const auto connect = [](Task& task) {
    return ParameterServerStrategy::Create(task).status();
  };
  TrainTask(std::move(options), identity, network, connect, [](Task&) {
  }).IgnoreError();  // Usually all tasks have ended.
}

}  // namespace muster
