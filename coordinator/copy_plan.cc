#include "coordinator/copy_plan.h"

#include "absl/time/time.h"

namespace muster {
namespace {

// A process that holds a complete copy is awaited for this time, if the serving
// one was restarted without its state.
constexpr absl::Duration kReturnTimeout = absl::Seconds(2);

bool HoldsCopyOf(const CopyView& view, const ServerWatch::State& task) {
  return task.lost.ok() && task.copy.is_holder() && task.copy.is_complete() &&
         task.copy.state_id() == view.state_id;
}

// True if the task serves with this state.
bool Serves(const CopyView& view, const ServerWatch::State& task) {
  return task.lost.ok() && !task.copy.is_holder() &&
         task.state_id == view.state_id;
}

// The serving task is well.
CopyStep StepOfServing(const CopyView& view, const ServerWatch::State& serving,
                       const ServerWatch::State& other) {
  const proto::CopyStatus& copy = serving.copy;
  const bool is_kept = copy.holder_incarnation() != 0 &&
                       copy.holder_incarnation() == other.incarnation &&
                       copy.problem().empty() && other.lost.ok();
  if (view.has_complete_copy) {
    if (!is_kept || other.is_ending) return {CopyAction::kDropCopy, other.task};
    if (serving.is_ending) return {CopyAction::kTakeOver, other.task};
    return {};
  }
  if (other.lost.ok() && other.is_ending) {
    return {CopyAction::kAllowExit, other.task};
  }
  if (is_kept && copy.is_complete()) {
    return {CopyAction::kNoteComplete, other.task};
  }
  // It waits for a holder that may not take over.
  if (copy.is_complete() && !is_kept) {
    return {CopyAction::kDropCopy, other.task};
  }
  const bool may_hold = other.lost.ok() && other.incarnation != 0;
  if (may_hold && !is_kept) return {CopyAction::kKeepCopy, other.task};
  return {};
}

}  // namespace

CopyStep NextCopyStep(const CopyView& view, const ServerWatch::State& serving,
                      const ServerWatch::State& other) {
  if (HoldsCopyOf(view, serving)) {
    // A takeover was recorded and not completed.
    return {CopyAction::kTakeOver, serving.task};
  }
  if (Serves(view, serving)) {
    if (Serves(view, other)) return {CopyAction::kEndTask, other.task};
    return StepOfServing(view, serving, other);
  }
  if (!view.has_complete_copy) return {};
  if (HoldsCopyOf(view, other) || Serves(view, other)) {
    return {CopyAction::kTakeOver, other.task};
  }
  // The state is lost if neither has it.
  const bool is_lost = other.lost.ok() || other.lost_for >= kReturnTimeout;
  if (serving.lost.ok() && is_lost) return {CopyAction::kDropCopy, other.task};
  return {};
}

CopyStep InPhase(CopyPhase phase, const CopyStep& step) {
  switch (phase) {
    case CopyPhase::kNotConnected:
      return {};
    case CopyPhase::kStarting:
      return step.action == CopyAction::kTakeOver ? step : CopyStep();
    case CopyPhase::kRunning:
      return step;
    case CopyPhase::kEnding:
      return step.action == CopyAction::kDropCopy ? step : CopyStep();
  }
  return {};
}

bool AwaitsTakeOver(const CopyView& view, const ServerWatch::State& serving) {
  return view.has_complete_copy && !Serves(view, serving);
}

}  // namespace muster
