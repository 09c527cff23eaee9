#ifndef COMMON_LEARN_TRAIN_TRAINING_REQUESTS_H_
#define COMMON_LEARN_TRAIN_TRAINING_REQUESTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/callback.h"
#include "common/learn/train/training_control.h"

namespace muster {

class Model;

// What operators (JobControl) and preemptions (PreemptionNotice) ask of
// training while Fit() runs: a checkpoint, or the end.
class TrainingRequests {
 public:
  // A place between two steps.
  struct Position {
    int epoch = 0;            // From 0.
    int64_t epoch_steps = 0;  // Done in this epoch.
  };

  // All are borrowed.
  TrainingRequests(Model* model, Strategy* strategy,
                   absl::Span<Callback* const> callbacks,
                   TrainingControl* control);

  // Serves the request for which the step loop has paused: that of an operator,
  // as the chief knows it, or otherwise a preemption. Collective. Sets
  // TrainingControl::stops if training is to end.
  //   kCancelled  a preemption: callbacks have saved. ExitCode::kTerminated
  absl::Status Serve(Position position);

 private:
  // Collective. An error of the disk is the operator's, and training goes on.
  absl::Status WriteCheckpoint(Position position);
  // Lets callbacks save; an error in any case.
  absl::Status EndBeforePreemption(Position position);

  Model& model_;
  Strategy& strategy_;
  const std::vector<Callback*> callbacks_;
  TrainingControl& control_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_TRAINING_REQUESTS_H_
