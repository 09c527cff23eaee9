#ifndef COMMON_LEARN_TRAIN_CHECKPOINTS_TRAINING_STATE_H_
#define COMMON_LEARN_TRAIN_CHECKPOINTS_TRAINING_STATE_H_

#include <memory>
#include <utility>
#include <vector>

#include "common/core/tensor/tensor.h"

namespace muster {
namespace proto {
class TrainingState;
}  // namespace proto

// The progress of Fit() at one moment: the next step, the position in the data,
// the sums of metrics, the history, and the state of callbacks.
//
// A value, cheap to copy. Thread-safe: immutable.
class TrainingState {
 public:
  // The state at the beginning of training.
  TrainingState();
  // Implicit, because the message is the form of the state in checkpoints.
  TrainingState(proto::TrainingState message);
  // `callback_tensors` are the tensors of each callback. Their numbers are
  // those in the message.
  TrainingState(proto::TrainingState message,
                std::vector<std::vector<Tensor>> callback_tensors);

  const proto::TrainingState& message() const { return *message_; }
  const std::vector<std::vector<Tensor>>& callback_tensors() const {
    return *callback_tensors_;
  }

 private:
  std::shared_ptr<const proto::TrainingState> message_;  // Never null.
  std::shared_ptr<const std::vector<std::vector<Tensor>>>
      callback_tensors_;  // Never null.
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CHECKPOINTS_TRAINING_STATE_H_
