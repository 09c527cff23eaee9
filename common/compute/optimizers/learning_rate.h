#ifndef COMMON_COMPUTE_OPTIMIZERS_LEARNING_RATE_H_
#define COMMON_COMPUTE_OPTIMIZERS_LEARNING_RATE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "common/compute/optimizers/schedule_kind.h"

namespace muster {

namespace proto {
class LearningRateSchedule;
}  // namespace proto

// A learning rate as a function of the number of completed updates: a number or
// a schedule, validated and with defaults filled in. A schedule counts
// gradients; an update may take several gradients.
//
// Thread-safe: immutable.
class LearningRate {
 public:
  //   kInvalidArgument  `number` is not finite, or negative
  static absl::StatusOr<LearningRate> Create(double number);
  // Errors: those of CompleteSchedule().
  static absl::StatusOr<LearningRate> Create(
      const proto::LearningRateSchedule& schedule);

  bool is_number() const { return kind_ == nullptr; }

  // Returns this learning rate for updates that take `count` gradients each.
  // The rate of an update is that of its last gradient.
  LearningRate WithGradientsPerUpdate(int64_t count) const {
    LearningRate rate = *this;
    rate.gradients_per_update_ = count;
    return rate;
  }

  // Returns the learning rate at update `step`, which must be at least 0.
  float At(int64_t step) const {
    if (is_number()) return number_;
    return kind_->rate_at(*schedule_, (step + 1) * gradients_per_update_ - 1);
  }

 private:
  LearningRate() = default;

  float number_ = 0;
  int64_t gradients_per_update_ = 1;
  const ScheduleKind* kind_ = nullptr;  // Null: see number_.
  // Null for a number.
  std::shared_ptr<const proto::LearningRateSchedule> schedule_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_LEARNING_RATE_H_
