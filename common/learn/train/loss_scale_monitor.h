#ifndef COMMON_LEARN_TRAIN_LOSS_SCALE_MONITOR_H_
#define COMMON_LEARN_TRAIN_LOSS_SCALE_MONITOR_H_

#include <cstdint>
#include <optional>
#include <string>

namespace muster {

// Follows the scale of the loss from step to step, publishes it to /metrics,
// and finds out when it does not settle. A step whose scale is below that of
// the step before tells that the latter was skipped.
//
// Not thread-safe.
class LossScaleMonitor {
 public:
  // So many skipped steps in a row are worth a warning, and so are twice as
  // many, and so on.
  static constexpr int kSkippedStepsMax = 10;
  // A scale below this makes gradients smaller: something else overflows.
  static constexpr double kScaleMin = 1;

  // Takes the scale of a step that has ended, the `step`-th of `epoch`, which
  // counts from 0. Returns a warning that names the skipped step, if there is
  // reason for one.
  std::optional<std::string> OnStep(double scale, int epoch, int64_t step);

 private:
  double scale_ = 0;  // Of the last step; 0 before the first.
  int epoch_ = 0;
  int64_t step_ = 0;
  int64_t skipped_count_ = 0;  // In a row.
  int64_t next_warning_ = kSkippedStepsMax;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_LOSS_SCALE_MONITOR_H_
