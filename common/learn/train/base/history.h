#ifndef COMMON_LEARN_TRAIN_BASE_HISTORY_H_
#define COMMON_LEARN_TRAIN_BASE_HISTORY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/core/system/duration_histogram.h"
#include "common/learn/train/base/non_finite.h"

namespace muster {

// Values at one point of training, by name: {"loss", 0.31}, {"val_loss", 0.42}.
// A metric that is a list of numbers has one entry for each number:
// {"f1_score[0]", 0.9}.
using Logs = std::map<std::string, double>;

// The record of a call of Fit(). Equivalent to: keras.callbacks.History.
struct History {
  // Numbers of the epochs trained, from 0.
  std::vector<int> epoch;
  // Values at the end of each of them, by name.
  std::map<std::string, std::vector<double>> history;

  // The first loss or metric that was NaN or infinite.
  std::optional<NonFiniteValue> first_non_finite;

  // True if an operator ended training early.
  bool is_stopped = false;

  int64_t step_count = 0;
  int64_t example_count = 0;
  // Time spent training, without validation. Includes the time of earlier
  // processes if training was resumed.
  double train_seconds = 0;
  // The part of train_seconds that earlier processes spent.
  double earlier_train_seconds = 0;
  // Durations of steps. If steps run in this process, each is the time from the
  // end of one step to the end of the next, without the first step. Otherwise
  // it is the time that the step took on its worker.
  DurationHistogram step_durations;
  // StepLoop::DeviceIdleShare() of training.
  std::optional<double> device_idle_share;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_HISTORY_H_
