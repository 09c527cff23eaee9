#ifndef COMMON_LEARN_TRAIN_CHECKPOINTS_TRAINING_PROGRESS_H_
#define COMMON_LEARN_TRAIN_CHECKPOINTS_TRAINING_PROGRESS_H_

#include "absl/status/status.h"
#include "proto/training_state.pb.h"

namespace muster {

// What Fit() knows while it runs, for callbacks that save and restore it.
class TrainingProgress {
 public:
  virtual ~TrainingProgress() = default;

  // Where training stands after the last step, or after the epoch when that has
  // ended.
  virtual proto::TrainingState State() const = 0;

  // Before the first step: training goes on there when all callbacks have been
  // told that it begins. The variables are somebody else's business.
  //   kFailedPrecondition  a step has been run
  virtual absl::Status GoOnFrom(const proto::TrainingState& state) = 0;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CHECKPOINTS_TRAINING_PROGRESS_H_
