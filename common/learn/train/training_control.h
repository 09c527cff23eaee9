#ifndef COMMON_LEARN_TRAIN_TRAINING_CONTROL_H_
#define COMMON_LEARN_TRAIN_TRAINING_CONTROL_H_

#include "common/learn/train/checkpoints/training_progress.h"

namespace muster {

// The requests that a call of Fit() and its callbacks make of each other
// through their model. Not thread-safe.
struct TrainingControl {
  // A callback requests that training stops after the current step.
  bool stops = false;
  // An operator has ended training, which is to be continued later.
  bool is_interrupted = false;
  TrainingProgress* progress = nullptr;  // Borrowed; null unless Fit() runs.
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_TRAINING_CONTROL_H_
