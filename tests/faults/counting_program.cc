// Counts its steps in variables. SGD with learning rate 1 and a gradient of
// exactly -1 adds one for each step that is applied, and float32 counts
// integers exactly. A lost or repeated update results in a wrong count.
//
//   --set closures=500          minimum number of steps
//   --set recoveries=0          continues until this many lost workers have
//                               recovered
//   --set heartbeat_timeout=5s  a worker that is silent for longer is lost
//   --set min_workers=0         begins with this many workers; 0: all
//   --set until=FILE            continues until this file exists
//
// Prints a line for each completed round of steps.

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/system/testing/await_true.h"
#include "muster.h"
#include "tests/cluster/counters.h"

namespace muster {
namespace {

constexpr int kClosuresPerRound = 25;

struct Settings {
  int64_t closure_count = 0;
  int64_t recovery_count = 0;
  absl::Duration heartbeat_timeout;
  int min_workers = 0;
  int ps_copies = 1;
  std::string until;
};

absl::StatusOr<Settings> ReadSettings(const Task& task) {
  Settings settings;
  ASSIGN_OR_RETURN(const std::string closures, task.flag("closures"));
  ASSIGN_OR_RETURN(const std::string recoveries, task.flag("recoveries"));
  ASSIGN_OR_RETURN(const std::string timeout, task.flag("heartbeat_timeout"));
  ASSIGN_OR_RETURN(const std::string workers, task.flag("min_workers"));
  ASSIGN_OR_RETURN(const std::string copies, task.flag("ps_copies"));
  ASSIGN_OR_RETURN(settings.until, task.flag("until"));
  if (!absl::SimpleAtoi(workers, &settings.min_workers) ||
      !absl::SimpleAtoi(copies, &settings.ps_copies) ||
      !absl::SimpleAtoi(closures, &settings.closure_count) ||
      !absl::SimpleAtoi(recoveries, &settings.recovery_count) ||
      !absl::ParseDuration(timeout, &settings.heartbeat_timeout)) {
    return absl::InvalidArgumentError(
        "expected --set closures=500 recoveries=0 heartbeat_timeout=5s");
  }
  return settings;
}

absl::Status Count(Task& task) {
  ASSIGN_OR_RETURN(const Settings settings, ReadSettings(task));
  ParameterServerStrategyOptions options;
  ASSIGN_OR_RETURN(options.partitioner, MakeFixedShardsPartitioner(2));
  options.heartbeat_timeout = settings.heartbeat_timeout;
  options.attempts_per_step_max = 1000;
  options.min_workers = settings.min_workers;
  options.server_copy_count = settings.ps_copies;
  ASSIGN_OR_RETURN(auto strategy,
                   ParameterServerStrategy::Create(task, options));
  VariableStore& variables = strategy->variables();
  RETURN_IF_ERROR(CreateCounters(variables));
  // If an assignment were delivered again later, it would undo steps.
  RETURN_IF_ERROR(ResetCounters(variables));

  // Ends before the test times out, so that the error says what has not
  // finished.
  const absl::Time deadline = absl::Now() + kTestWaitMax - absl::Seconds(10);
  ClusterCoordinator coordinator(*strategy);
  const Function step = CountingStep();
  int64_t scheduled_count = 0;
  // The next round is scheduled before the previous one has finished, so that
  // workers are never idle.
  RemoteValue last;
  while (
      scheduled_count < settings.closure_count ||
      strategy->Report().recovery_count < settings.recovery_count ||
      (!settings.until.empty() && !std::filesystem::exists(settings.until))) {
    const RemoteValue last_of_round_before = last;
    for (int i = 0; i < kClosuresPerRound; ++i) {
      ASSIGN_OR_RETURN(last, coordinator.Schedule(step, {}, deadline));
    }
    if (scheduled_count > 0) {
      RETURN_IF_ERROR(
          coordinator.Fetch(last_of_round_before, deadline).status());
      std::cout << "through: " << scheduled_count << std::endl;
    }
    scheduled_count += kClosuresPerRound;
  }
  RETURN_IF_ERROR(coordinator.Join(deadline));
  RETURN_IF_ERROR(ExpectCounted(variables, scheduled_count));
  std::cout << "every closure counted once: " << scheduled_count << std::endl;
  return absl::OkStatus();
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  return muster::RunTask(
      argc, argv, muster::Count,
      {{"closures", "500", "Steps at least."},
       {"recoveries", "0", "Lost workers that have to come back."},
       {"heartbeat_timeout", "5s", "A worker silent for longer is lost."},
       {"min_workers", "0", "Begins with so many workers."},
       {"ps_copies", "1", "Tasks that have the state of each server."},
       {"until", "", "Continues until this file exists."}});
}
