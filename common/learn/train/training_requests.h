#ifndef COMMON_LEARN_TRAIN_TRAINING_REQUESTS_H_
#define COMMON_LEARN_TRAIN_TRAINING_REQUESTS_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/training_control.h"

namespace muster {

class Model;

// Serves requests of operators (JobControl) and preemptions (PreemptionNotice)
// while Fit() runs. A request is for a checkpoint or for the end of training.
class TrainingRequests {
 public:
  // A position between two steps.
  struct Position {
    int epoch = 0;            // From 0.
    int64_t epoch_steps = 0;  // Finished steps of this epoch.
    // True between two training steps, where processes can join.
    bool takes_joiners = false;
  };

  // Pointers are borrowed. `save` is called before a preemption ends training,
  // and `take_in` to take in processes that join; see GroupMembership.
  TrainingRequests(Model* model, Strategy* strategy, TrainingControl* control,
                   std::function<absl::Status()> save,
                   std::function<absl::Status()> take_in);

  // Serves the request for which the step loop has paused: the operator's
  // request that the chief has received, or the request of processes to join,
  // or otherwise a preemption. Collective.
  // Sets TrainingControl::stops and is_interrupted if an operator ends
  // training.
  //   kCancelled  a preemption ends training, after `save`, or ends this worker
  //               while the others continue; carries ExitCode::kTerminated
  absl::Status Serve(Position position);

 private:
  // Returns what the chief asks of all workers; empty: nothing.
  std::string OwnRequest(Position position);
  // Collective. An error of the disk is reported to the operator, and training
  // continues.
  absl::Status WriteCheckpoint(Position position);
  // Collective. Returns true if the preempted workers may leave, and the others
  // continue.
  absl::StatusOr<bool> MayLeaveAlone();
  // Returns an error on a worker that leaves.
  absl::Status Leave(Position position);
  // Saves, and always returns an error.
  absl::Status EndBeforePreemption(Position position);

  Model& model_;
  Strategy& strategy_;
  TrainingControl& control_;
  const std::function<absl::Status()> save_;
  const std::function<absl::Status()> take_in_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_TRAINING_REQUESTS_H_
