#include "coordinator/command_plan.h"

#include "absl/time/time.h"

namespace muster {
namespace {

// Maximum number of closures in one message.
constexpr int kClosuresPerMessageMax = 2048;

// If a worker has at least this much work, it can wait for a fuller message.
constexpr absl::Duration kBacklogEnough = absl::Milliseconds(1);

// A drained worker exits with status 0.
proto::JobEnd EndOfDrained() {
  proto::JobEnd end;
  end.set_reason(
      "this worker has been drained and leaves the job, which continues "
      "without it");
  return end;
}

}  // namespace

std::optional<PlannedCommand> PlanCommand(const CommandSources& sources,
                                          const TickLoop::Turn& turn,
                                          WorkerRecord* record) {
  ClosureQueue& queue = *sources.queue;
  const int worker = record->worker;
  PlannedCommand plan = {.worker = worker, .session = record->session};
  queue.SetPaused(worker,
                  record->is_leaving || turn.now < record->paused_until);
  bool has_content = turn.is_tick;
  if (sources.hands_out_closures && queue.HasClosuresFor(worker) &&
      (queue.queued_count() >= kClosuresWorthAMessage ||
       queue.backlog(worker) < kBacklogEnough)) {
    sources.definitions->AddTo(record, &plan.command);
    queue.Take(worker, kClosuresPerMessageMax, &plan.closures);
    plan.leaves_closures = queue.queued_count() > 0;
    has_content = true;
  }
  if (queue.HasRecallsFor(worker)) {
    const auto recalled = queue.TakeRecalls(worker);
    plan.command.mutable_recalled()->Add(recalled.begin(), recalled.end());
    has_content = true;
  }
  if (const ClosureQueue::Answers answers = queue.TakeAnswers(worker);
      !answers.empty()) {
    plan.command.mutable_permitted()->Assign(answers.permitted.begin(),
                                             answers.permitted.end());
    plan.command.mutable_denied()->Assign(answers.denied.begin(),
                                          answers.denied.end());
    has_content = true;
  }
  if (!record->released.empty()) {
    plan.command.mutable_released()->Add(record->released.begin(),
                                         record->released.end());
    record->released.clear();
    has_content = true;
  }
  const bool has_left =
      record->is_leaving && queue.in_flight_count(worker) == 0;
  if (sources.job_end != nullptr || has_left) {
    *plan.command.mutable_job_end() =
        sources.job_end == nullptr ? EndOfDrained() : *sources.job_end;
    plan.is_last = true;
    has_content = true;
  }
  if (!has_content) return std::nullopt;
  if (record->sent_low_water_mark != queue.low_water_mark()) {
    record->sent_low_water_mark = queue.low_water_mark();
    plan.command.set_low_water_mark(record->sent_low_water_mark);
  }
  return plan;
}

}  // namespace muster
