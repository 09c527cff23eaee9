#include "common/compute/optimizers/learning_rate.h"

#include "common/compute/optimizers/argument_checks.h"
#include "common/core/base/status_macros.h"
#include "proto/optimizer.pb.h"

namespace muster {

absl::StatusOr<LearningRate> LearningRate::Create(double number) {
  RETURN_IF_ERROR(CheckNotNegative("learning_rate", number));
  LearningRate rate;
  rate.number_ = static_cast<float>(number);
  return rate;
}

absl::StatusOr<LearningRate> LearningRate::Create(
    const proto::LearningRateSchedule& schedule) {
  LearningRate rate;
  ASSIGN_OR_RETURN(proto::LearningRateSchedule complete,
                   CompleteSchedule(schedule));
  rate.schedule_ =
      std::make_shared<const proto::LearningRateSchedule>(std::move(complete));
  rate.kind_ = FindScheduleKind(schedule);
  return rate;
}

}  // namespace muster
