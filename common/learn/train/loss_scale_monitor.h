#ifndef COMMON_LEARN_TRAIN_LOSS_SCALE_MONITOR_H_
#define COMMON_LEARN_TRAIN_LOSS_SCALE_MONITOR_H_

#include <cstdint>
#include <optional>
#include <string>

namespace muster {

// Observes the scale of the loss at each step, publishes it to /metrics, and
// detects that it does not settle. If the scale of a step is lower than that of
// the previous step, the previous step was skipped.
//
// Not thread-safe.
class LossScaleMonitor {
 public:
  // Warns after this number of consecutive skipped steps, then after twice as
  // many, and so on.
  static constexpr int kSkippedStepsMax = 10;
  // A scale below this value makes gradients smaller, so something else
  // overflows.
  static constexpr double kScaleMin = 1;

  // Takes the scale of a finished step, the `step`-th of `epoch`, which counts
  // from 0. Returns a warning that names the skipped step, if one is due.
  std::optional<std::string> OnStep(double scale, int epoch, int64_t step);

 private:
  double scale_ = 0;  // The scale of the last step; 0 before the first.
  int epoch_ = 0;
  int64_t step_ = 0;
  int64_t skipped_count_ = 0;  // Consecutive skipped steps.
  int64_t next_warning_ = kSkippedStepsMax;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_LOSS_SCALE_MONITOR_H_
