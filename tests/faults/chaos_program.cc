// Counts its steps in variables like counting_program, while parameter servers
// and workers are killed and restarted. Runs for a given time and saves a
// checkpoint after some of the rounds. After each round every variable must
// equal the number of steps that are not undone, and no rollback may undo a
// step before the last checkpoint.
//
//   --set seconds=15        duration
//   --set folder=DIR        for checkpoints; all tasks must have access
//   --set heartbeat_timeout=5s  a task that is silent for longer is lost
//
// Prints "through: N" after each round, "durable: N" after each checkpoint and
// "rolled back: N steps undone" for each rollback.

#include <atomic>
#include <cstdint>
#include <iostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/compute/variables/variable_store.h"
#include "muster.h"
#include "tests/cluster/counters.h"

namespace muster {
namespace {

constexpr int kClosuresPerRound = 40;
constexpr int kRoundsPerCheckpoint = 4;
// The maximum duration of a round, including recoveries.
constexpr absl::Duration kRoundTimeout = absl::Seconds(50);

// Trains with steps that count themselves.
class Chaos {
 public:
  Chaos(ParameterServerStrategy* strategy, std::string folder)
      : variables_(strategy->variables()),
        coordinator_(*strategy),
        folder_(std::move(folder)) {
    coordinator_.OnRollback([this](const RollbackReport& report) {
      undone_count_ += report.undone_count;
      ++rollback_count_;
      std::cout << "rolled back: " << report.undone_count << " steps undone"
                << std::endl;
    });
  }

  absl::Status Round() {
    for (int i = 0; i < kClosuresPerRound; ++i) {
      RETURN_IF_ERROR(
          coordinator_.Schedule(step_, {}, absl::Now() + kRoundTimeout)
              .status());
    }
    scheduled_count_ += kClosuresPerRound;
    return CheckCount();
  }

  absl::Status Save() {
    const int64_t rollbacks = rollback_count_;
    const int64_t applied = scheduled_count_ - undone_count_;
    const absl::StatusOr<std::string> saved =
        coordinator_.SaveCheckpoint(folder_);
    // A server was lost. A later round saves again.
    if (!saved.ok()) {
      std::cout << "not saved: " << saved.status() << std::endl;
      return absl::OkStatus();
    }
    if (rollbacks != rollback_count_) return absl::OkStatus();
    durable_count_ = applied;
    std::cout << "durable: " << applied << std::endl;
    return absl::OkStatus();
  }

  int64_t applied() const { return scheduled_count_ - undone_count_; }

 private:
  // Repeats the check if a server is lost during it.
  absl::Status CheckCount() {
    const absl::Time deadline = absl::Now() + kRoundTimeout;
    absl::Status status;
    do {
      RETURN_IF_ERROR(coordinator_.Join(deadline));
      const int64_t rollbacks = rollback_count_;
      const int64_t count = applied();
      if (count < durable_count_) {
        return absl::InternalError(
            absl::StrCat("only ", count, " steps count, and ", durable_count_,
                         " were durable"));
      }
      status = ExpectCounted(variables_, count);
      if (status.ok()) {
        std::cout << "through: " << count << std::endl;
        return absl::OkStatus();
      }
      // No server was lost, so the count is wrong.
      if (absl::IsInternal(status) && rollbacks == rollback_count_) {
        RETURN_IF_ERROR(coordinator_.Join(deadline));
        if (rollbacks == rollback_count_) return status;
      }
    } while (absl::Now() < deadline);
    return status;
  }

  VariableStore& variables_;
  ClusterCoordinator coordinator_;
  const std::string folder_;
  const Function step_ = CountingStep();
  int64_t scheduled_count_ = 0;
  int64_t durable_count_ = 0;
  std::atomic<int64_t> undone_count_ = 0;
  std::atomic<int64_t> rollback_count_ = 0;
};

absl::Status Count(Task& task) {
  int64_t seconds = 15;
  ASSIGN_OR_RETURN(const std::string folder, task.flag("folder"));
  ASSIGN_OR_RETURN(const std::string text, task.flag("seconds"));
  if (!absl::SimpleAtoi(text, &seconds)) {
    return absl::InvalidArgumentError("expected --set seconds=15");
  }
  ASSIGN_OR_RETURN(const std::string timeout, task.flag("heartbeat_timeout"));
  ParameterServerStrategyOptions options;
  if (!absl::ParseDuration(timeout, &options.heartbeat_timeout)) {
    return absl::InvalidArgumentError("expected --set heartbeat_timeout=5s");
  }
  ASSIGN_OR_RETURN(options.partitioner, MakeFixedShardsPartitioner(2));
  options.attempts_per_step_max = 1000;
  ASSIGN_OR_RETURN(auto strategy,
                   ParameterServerStrategy::Create(task, options));
  RETURN_IF_ERROR(CreateCounters(strategy->variables()));
  Chaos chaos(strategy.get(), folder);
  const absl::Time end = absl::Now() + absl::Seconds(seconds);
  for (int round = 1; absl::Now() < end; ++round) {
    RETURN_IF_ERROR(chaos.Round());
    if (round % kRoundsPerCheckpoint == 0) RETURN_IF_ERROR(chaos.Save());
  }
  std::cout << "every step counted once: " << chaos.applied() << std::endl;
  return absl::OkStatus();
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  return muster::RunTask(
      argc, argv, muster::Count,
      {{"seconds", "15", "How long."},
       {"folder", "", "For checkpoints."},
       {"heartbeat_timeout", "5s", "A task silent for longer is lost."}});
}
