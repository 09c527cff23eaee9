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

// Learning-rate schedules. `step` is the number of completed updates. Names,
// defaults and semantics are those of keras.optimizers.schedules
// (https://keras.io/api/optimizers/learning_rate_schedules/). Arguments are
// validated when the optimizer is used (UpdateRule::Create()).

// initial_learning_rate * decay_rate ^ (step / decay_steps)
struct ExponentialDecayOptions {
  double initial_learning_rate = 0;  // Required; at least 0.
  int64_t decay_steps = 0;           // Required; at least 1.
  double decay_rate = 0;             // Required; at least 0.
  bool staircase = false;            // Rounds the exponent down.
};
proto::LearningRateSchedule ExponentialDecay(
    const ExponentialDecayOptions& options);

// values[i] up to and including step boundaries[i], then the last value.
struct PiecewiseConstantDecayOptions {
  std::vector<int64_t> boundaries;  // Ascending.
  std::vector<double> values;       // One value more than boundaries.
};
proto::LearningRateSchedule PiecewiseConstantDecay(
    const PiecewiseConstantDecayOptions& options);

// end + (initial - end) * (1 - step / decay_steps) ^ power, then end.
struct PolynomialDecayOptions {
  double initial_learning_rate = 0;  // Required; at least 0.
  int64_t decay_steps = 0;           // Required; at least 1.
  double end_learning_rate = 0.0001;
  double power = 1.0;
  bool cycle = false;  // Restarts with a multiple of decay_steps.
};
proto::LearningRateSchedule PolynomialDecay(
    const PolynomialDecayOptions& options);

// Cosine decay from initial_learning_rate to `alpha` times that value. With a
// warmup, the rate first rises linearly to warmup_target in warmup_steps and
// decays from there. Source: Loshchilov and Hutter, arXiv:1608.03983, without
// restarts.
struct CosineDecayOptions {
  double initial_learning_rate = 0;  // Required; at least 0.
  int64_t decay_steps = 0;           // Required; at least 1.
  double alpha = 0.0;
  double warmup_target = 0;  // 0: no warmup.
  int64_t warmup_steps = 0;
};
proto::LearningRateSchedule CosineDecay(const CosineDecayOptions& options);

// initial_learning_rate / (1 + decay_rate * step / decay_steps)
struct InverseTimeDecayOptions {
  double initial_learning_rate = 0;  // Required; at least 0.
  int64_t decay_steps = 0;           // Required; at least 1.
  double decay_rate = 0;             // Required; at least 0.
  bool staircase = false;            // Rounds step / decay_steps down.
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

// A row of the table of schedules. The `schedule` arguments of its functions
// must be complete and of this kind.
struct ScheduleKind {
  proto::LearningRateSchedule::KindCase kind_case;
  absl::string_view keras_class;  // Such as "CosineDecay".
  // Returns a schedule in which every optional argument has its default.
  proto::LearningRateSchedule (*defaults)();
  //   kInvalidArgument  an argument is out of range; the message names it
  absl::Status (*check)(const proto::LearningRateSchedule& schedule);
  // Returns the rate, computed in float32 as in Keras. `step` must be at least
  // 0.
  float (*rate_at)(const proto::LearningRateSchedule& schedule, int64_t step);
};

absl::Span<const ScheduleKind> ScheduleKinds();

// Returns null if `schedule` sets no kind.
const ScheduleKind* FindScheduleKind(
    const proto::LearningRateSchedule& schedule);

// Returns `schedule` with Keras' defaults for absent arguments.
//   kInvalidArgument  no kind is set, a required argument is missing, or an
//                     argument is out of range; the message names the schedule
//                     and the argument
absl::StatusOr<proto::LearningRateSchedule> CompleteSchedule(
    const proto::LearningRateSchedule& schedule);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_LEARNING_RATE_SCHEDULES_H_
