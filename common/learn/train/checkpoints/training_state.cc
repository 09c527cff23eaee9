#include "common/learn/train/checkpoints/training_state.h"

#include <memory>
#include <utility>

#include "proto/training_state.pb.h"

namespace muster {

TrainingState::TrainingState() : TrainingState(proto::TrainingState()) {}

TrainingState::TrainingState(proto::TrainingState message)
    : message_(
          std::make_shared<const proto::TrainingState>(std::move(message))) {}

}  // namespace muster
