#ifndef COMMON_LEARN_STRATEGY_GROUP_MEMBERSHIP_H_
#define COMMON_LEARN_STRATEGY_GROUP_MEMBERSHIP_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// How processes join synchronous workers that already train.
//
// A process that joins runs the same program. Until training begins, it repeats
// what the others have done: agreements return their results, and variables are
// not restored. Join() then gives it the variables of the others, and the
// caller sends it the progress of training.
//
// Has the threads of WorkerAgreement.
class GroupMembership {
 public:
  virtual ~GroupMembership() = default;

  // True in a process that joins, until Join() has succeeded.
  virtual bool is_joining() const = 0;

  // Call it when training begins, before its first step, in processes that are
  // not joining. Records what processes that join later have to repeat.
  virtual absl::Status NoteTrainingBegins() = 0;

  // Blocks until the other workers have taken this process in. Variables and
  // optimizer slots are then theirs.
  //   kDeadlineExceeded, kUnavailable  they have not; says why
  virtual absl::Status Join() = 0;

  // True if a process is ready to join. Known to the chief only. Thread-safe.
  virtual bool has_joiners() const = 0;

  // Decides which processes are taken in. Called by the chief, before all
  // workers call TakeIn().
  //   errors  of the run directory; then no worker calls TakeIn()
  virtual absl::Status Propose() = 0;

  // Takes in the processes of Propose(). A collective, between two steps, that
  // Join() is part of.
  virtual absl::Status TakeIn() = 0;

  // Returns true if the workers that want to leave may do so, because enough
  // are left, and at least one wants to. They then end with a status that asks
  // for no restart of the others. A collective, between two steps.
  virtual absl::StatusOr<bool> MayLeave(bool wants_to_leave) = 0;

  // Returns the bytes of a worker that was not joining, on all workers. A
  // collective, after TakeIn() and Join(). `what` is as in
  // WorkerAgreement::FromChief().
  virtual absl::StatusOr<std::string> FromOthers(absl::string_view what,
                                                 std::string bytes) = 0;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_GROUP_MEMBERSHIP_H_
