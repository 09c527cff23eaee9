#ifndef COMMON_LEARN_STRATEGY_TRAINING_RECOVERY_H_
#define COMMON_LEARN_STRATEGY_TRAINING_RECOVERY_H_

#include <any>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// An earlier state of training, restored after a loss.
struct Rollback {
  // The checkpoint from which variables were restored; empty: they have their
  // initial values.
  std::string checkpoint;
  // Steps that had succeeded and are undone.
  int64_t undone_step_count = 0;
  // The result of SetProgressSource()'s function for that state; no value if
  // there was none, because this process had not begun to train.
  std::any progress;
};

// Training whose variables can be lost with another process, and are then
// restored from a checkpoint while this process keeps running.
//
// Thread-safe.
class TrainingRecovery {
 public:
  virtual ~TrainingRecovery() = default;

  // Sets the function that returns the progress of training. It is called for
  // each checkpoint, on the thread that makes it, and its results are kept as
  // long as training can be rolled back to them. Null: none.
  virtual void SetProgressSource(std::function<std::any()> source) = 0;

  // Sets the function that saves training before a process with variables that
  // is preempted exits. It is called between two steps, on the thread that runs
  // them. Null: none.
  virtual void SetPreemptionSaver(std::function<absl::Status()> save) = 0;

  // Returns the progress from which training continues, if this process
  // continues the training of another one that was lost, with the variables as
  // they are. No value otherwise, and after the first call.
  virtual std::any TakeContinuedProgress() = 0;

  // Call it when training is complete, before the progress source is removed.
  //   any  the progress cannot be recorded for another process
  virtual absl::Status NoteTrained() = 0;

  // Whether the processes with the variables may write a checkpoint `prefix`:
  // to be asked before training. Writes nothing. OK if that cannot be told now.
  //   kPermissionDenied, kInvalidArgument  they will never do it; says why
  virtual absl::Status CheckCanSave(absl::string_view prefix) = 0;

  // Call it after a step, a read or a save has failed with `status`. Returns
  // whether training was rolled back in the meantime; blocks until a rollback
  // in progress is complete. The caller resets its progress to the returned
  // state, and its loops continue from there.
  //   kDeadlineExceeded  the lost task does not return
  //   others             training was ended meanwhile, with this error
  virtual absl::StatusOr<std::optional<Rollback>> AwaitRollback(
      const absl::Status& status) = 0;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_TRAINING_RECOVERY_H_
