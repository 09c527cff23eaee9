#ifndef COMMON_COMPUTE_OPTIMIZERS_LEARNING_RATE_SCHEDULES_H_
#define COMMON_COMPUTE_OPTIMIZERS_LEARNING_RATE_SCHEDULES_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

namespace muster {
namespace proto {
class LearningRateSchedule;
}  // namespace proto

// A learning rate as a function of the number of completed updates.
//
// A value, cheap to copy. Thread-safe: immutable.
class LearningRateSchedule {
 public:
  // Implicit, because the message is the form of a schedule in job files, on
  // the wire and in checkpoints.
  LearningRateSchedule(proto::LearningRateSchedule message);

  const proto::LearningRateSchedule& message() const { return *message_; }

 private:
  std::shared_ptr<const proto::LearningRateSchedule> message_;  // Never null.
};

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
LearningRateSchedule ExponentialDecay(const ExponentialDecayOptions& options);

// values[i] up to and including step boundaries[i], then the last value.
struct PiecewiseConstantDecayOptions {
  std::vector<int64_t> boundaries;  // Ascending.
  std::vector<double> values;       // One value more than boundaries.
};
LearningRateSchedule PiecewiseConstantDecay(
    const PiecewiseConstantDecayOptions& options);

// end + (initial - end) * (1 - step / decay_steps) ^ power, then end.
struct PolynomialDecayOptions {
  double initial_learning_rate = 0;  // Required; at least 0.
  int64_t decay_steps = 0;           // Required; at least 1.
  double end_learning_rate = 0.0001;
  double power = 1.0;
  bool cycle = false;  // Restarts with a multiple of decay_steps.
};
LearningRateSchedule PolynomialDecay(const PolynomialDecayOptions& options);

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
LearningRateSchedule CosineDecay(const CosineDecayOptions& options);

// CosineDecay without warmup that restarts, for the first time after
// first_decay_steps. Each period is t_mul times as long as the previous one,
// and begins with m_mul times the previous initial rate. Source: Loshchilov and
// Hutter, arXiv:1608.03983.
struct CosineDecayRestartsOptions {
  double initial_learning_rate = 0;  // Required; at least 0.
  int64_t first_decay_steps = 0;     // Required; at least 1.
  double t_mul = 2.0;                // At least 1.
  double m_mul = 1.0;                // At least 0.
  double alpha = 0.0;
};
LearningRateSchedule CosineDecayRestarts(
    const CosineDecayRestartsOptions& options);

// initial_learning_rate / (1 + decay_rate * step / decay_steps)
struct InverseTimeDecayOptions {
  double initial_learning_rate = 0;  // Required; at least 0.
  int64_t decay_steps = 0;           // Required; at least 1.
  double decay_rate = 0;             // Required; at least 0.
  bool staircase = false;            // Rounds step / decay_steps down.
};
LearningRateSchedule InverseTimeDecay(const InverseTimeDecayOptions& options);

// The learning rate of an optimizer: a number or a schedule.
class LearningRateOption {
 public:
  LearningRateOption(double number) : value_(number) {}
  LearningRateOption(LearningRateSchedule schedule)
      : value_(std::move(schedule)) {}

  const std::variant<double, LearningRateSchedule>& value() const {
    return value_;
  }

 private:
  std::variant<double, LearningRateSchedule> value_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_LEARNING_RATE_SCHEDULES_H_
