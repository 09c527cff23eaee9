#ifndef COMMON_COMPUTE_OPTIMIZERS_LEARNING_RATE_SCHEDULES_H_
#define COMMON_COMPUTE_OPTIMIZERS_LEARNING_RATE_SCHEDULES_H_

#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/optimizer.pb.h"

namespace muster {

// Learning-rate schedules as a program writes them. `step` is the number of
// updates made so far. Names, defaults and meaning are those of
// keras.optimizers.schedules, https://keras.io/api/optimizers/
// learning_rate_schedules/. Values are checked where the optimizer is used
// (UpdateRule::Create()).

// initial_learning_rate * decay_rate ^ (step / decay_steps)
struct ExponentialDecayOptions {
  double initial_learning_rate = 0;  // Required, not negative.
  int64_t decay_steps = 0;           // Required, at least 1.
  double decay_rate = 0;             // Required, not negative.
  bool staircase = false;            // Whole powers only.
};
proto::LearningRateSchedule ExponentialDecay(
    const ExponentialDecayOptions& options);

// values[i] up to and including step boundaries[i], the last value after them.
struct PiecewiseConstantDecayOptions {
  std::vector<int64_t> boundaries;  // Ascending.
  std::vector<double> values;       // One more than boundaries.
};
proto::LearningRateSchedule PiecewiseConstantDecay(
    const PiecewiseConstantDecayOptions& options);

// From initial to end as (1 - step / decay_steps) ^ power.
struct PolynomialDecayOptions {
  double initial_learning_rate = 0;  // Required, not negative.
  int64_t decay_steps = 0;           // Required, at least 1.
  double end_learning_rate = 0.0001;
  double power = 1.0;
  bool cycle = false;  // Starts over, each time for more steps.
};
proto::LearningRateSchedule PolynomialDecay(
    const PolynomialDecayOptions& options);

// Half a cosine from initial_learning_rate (or from warmup_target, which is
// reached in warmup_steps) down to the fraction `alpha` of it.
// Source: arXiv:1608.03983, without restarts.
struct CosineDecayOptions {
  double initial_learning_rate = 0;  // Required, not negative.
  int64_t decay_steps = 0;           // Required, at least 1.
  double alpha = 0.0;
  double warmup_target = 0;  // 0: no warmup.
  int64_t warmup_steps = 0;
};
proto::LearningRateSchedule CosineDecay(const CosineDecayOptions& options);

// initial_learning_rate / (1 + decay_rate * step / decay_steps)
struct InverseTimeDecayOptions {
  double initial_learning_rate = 0;  // Required, not negative.
  int64_t decay_steps = 0;           // Required, at least 1.
  double decay_rate = 0;             // Required, not negative.
  bool staircase = false;            // Whole decay_steps only.
};
proto::LearningRateSchedule InverseTimeDecay(
    const InverseTimeDecayOptions& options);

// The learning rate of an optimizer: a number or a schedule.
class LearningRateOption {
 public:
  LearningRateOption(double number) : value_(number) {}
  LearningRateOption(proto::LearningRateSchedule schedule)
      : value_(std::move(schedule)) {}

  const std::variant<double, proto::LearningRateSchedule>& value() const {
    return value_;
  }

 private:
  std::variant<double, proto::LearningRateSchedule> value_;
};

// A row of the table of schedules. `schedule` is complete and of this kind.
struct ScheduleKind {
  proto::LearningRateSchedule::KindCase kind_case;
  absl::string_view keras_class;  // "CosineDecay"
  // Every argument that has a default, at it.
  proto::LearningRateSchedule (*defaults)();
  // kInvalidArgument: an argument is out of range; names it.
  absl::Status (*check)(const proto::LearningRateSchedule& schedule);
  // Computed in float32, as Keras does. `step` is not negative.
  float (*rate_at)(const proto::LearningRateSchedule& schedule, int64_t step);
};

absl::Span<const ScheduleKind> ScheduleKinds();

// Null if `schedule` names none.
const ScheduleKind* FindScheduleKind(
    const proto::LearningRateSchedule& schedule);

// `schedule` with Keras' defaults where it says nothing.
//   kInvalidArgument  no schedule is named, a required argument is missing, or
//                     one is out of range; names the schedule and the argument
absl::StatusOr<proto::LearningRateSchedule> CompleteSchedule(
    const proto::LearningRateSchedule& schedule);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_LEARNING_RATE_SCHEDULES_H_
