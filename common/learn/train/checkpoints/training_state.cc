#include "common/learn/train/checkpoints/training_state.h"

#include <memory>
#include <utility>
#include <vector>

#include "proto/training_state.pb.h"

namespace muster {

TrainingState::TrainingState() : TrainingState(proto::TrainingState()) {}

TrainingState::TrainingState(proto::TrainingState message)
    : TrainingState(std::move(message), {}) {}

TrainingState::TrainingState(proto::TrainingState message,
                             std::vector<std::vector<Tensor>> callback_tensors)
    : message_(
          std::make_shared<const proto::TrainingState>(std::move(message))),
      callback_tensors_(
          std::make_shared<const std::vector<std::vector<Tensor>>>(
              std::move(callback_tensors))) {}

}  // namespace muster
