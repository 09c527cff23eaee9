#ifndef COMMON_LEARN_TRAIN_TRAINING_REQUESTS_H_
#define COMMON_LEARN_TRAIN_TRAINING_REQUESTS_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/training_control.h"

namespace muster {

class Model;

// Serves the requests of operators (JobControl) and of preemptions
// (PreemptionNotice) while Fit() runs: a checkpoint, or the end.
class TrainingRequests {
 public:
  // A place between two steps.
  struct Position {
    int epoch = 0;            // From 0.
    int64_t epoch_steps = 0;  // Done in this epoch.
  };

  // Pointers are borrowed. `save` saves before a preemption ends training.
  TrainingRequests(Model* model, Strategy* strategy, TrainingControl* control,
                   std::function<absl::Status()> save);

  // Serves the request for which the step loop has paused: that of an operator,
  // as the chief knows it, or otherwise a preemption. Collective. Sets
  // TrainingControl::stops and is_interrupted if an operator ends training.
  //   kCancelled  a preemption: `save` is done. ExitCode::kTerminated
  absl::Status Serve(Position position);

 private:
  // Collective. An error of the disk is the operator's, and training continues.
  absl::Status WriteCheckpoint(Position position);
  // Saves; an error in any case.
  absl::Status EndBeforePreemption(Position position);

  Model& model_;
  Strategy& strategy_;
  TrainingControl& control_;
  const std::function<absl::Status()> save_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_TRAINING_REQUESTS_H_
