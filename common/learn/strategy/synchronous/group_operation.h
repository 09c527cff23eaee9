#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_GROUP_OPERATION_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_GROUP_OPERATION_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

// Something that all workers of a group do together, in the same order, and
// that has one result: a step, or an agreement. ReplicaGroup::Complete()
// repeats it if a worker is lost.
//
// A worker that has not completed the operation when the group loses a worker,
// although another one has, takes over the result.
class GroupOperation {
 public:
  virtual ~GroupOperation() = default;

  // Runs the operation with the current communicators of the group. After an
  // error it can run again.
  virtual absl::Status Run() = 0;

  // Returns the result of the last Run(), which is equal on all workers.
  virtual std::string Result() const = 0;

  // Takes over the result of a worker that has completed the operation, in
  // place of Run().
  //   kInternal  `result` is not a result of this operation
  virtual absl::Status Adopt(absl::string_view result) = 0;

  // True if the operation changes variables. A worker that has not completed it
  // then gets them too.
  virtual bool changes_variables() const { return false; }

  // True if a process that joins the group before training can take over the
  // result in place of running the operation.
  virtual bool can_be_repeated() const { return true; }

  // True if Run() may change variables before it fails.
  virtual bool may_end_halfway() const { return false; }
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_GROUP_OPERATION_H_
