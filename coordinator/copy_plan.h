#ifndef COORDINATOR_COPY_PLAN_H_
#define COORDINATOR_COPY_PLAN_H_

#include <cstdint>

#include "coordinator/server_watch.h"

namespace muster {

// What the coordinator has recorded of one server whose state two tasks hold.
struct CopyView {
  int serving_task = 0;
  // Identifies the current state of the server.
  uint64_t state_id = 0;
  // True if the other task may take over. Recorded as false before the serving
  // task may acknowledge anything that the other one lacks.
  bool has_complete_copy = false;
};

enum class CopyAction {
  kNone,
  kTakeOver,      // `task` takes over: it serves from now on.
  kDropCopy,      // The serving task keeps no copy from now on.
  kKeepCopy,      // The serving task begins to send its state to `task`.
  kNoteComplete,  // The other task has a complete copy.
  kEndTask,       // `task` was replaced and does not know it.
  kAllowExit,     // `task` is not needed and may exit.
};

enum class CopyPhase {
  kNotConnected,  // The record of the job is not known.
  kStarting,      // It is not decided whether the tasks continue the job.
  kRunning,
  kEnding,
};

struct CopyStep {
  CopyAction action = CopyAction::kNone;
  int task = 0;

  bool operator==(const CopyStep&) const = default;
};

// Decides the next step for one server. `serving` and `other` are the states of
// the task that serves it and of its other task. Has no side effects.
//
// A lost task counts as lost at once: if it serves, a takeover is safe also
// when it still runs, because it can acknowledge nothing without the other one.
CopyStep NextCopyStep(const CopyView& view, const ServerWatch::State& serving,
                      const ServerWatch::State& other);

// Returns the step if the phase permits it, and otherwise none. At the start a
// task gets no copy, because it would then belong to the job. At the end copies
// are only dropped, so that no answer waits for a lost one.
CopyStep InPhase(CopyPhase phase, const CopyStep& step);

// True if the task may be replaced by the other one, so that its loss undoes
// nothing.
bool AwaitsTakeOver(const CopyView& view, const ServerWatch::State& serving);

}  // namespace muster

#endif  // COORDINATOR_COPY_PLAN_H_
