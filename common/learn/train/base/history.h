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

// Values of a moment, by name: {"loss", 0.31}, {"val_loss", 0.42}. A metric
// that is a list of numbers has one entry for each: {"f1_score[0]", 0.9}.
using Logs = std::map<std::string, double>;

// The record of a call of Fit(). Equivalent to: keras.callbacks.History.
struct History {
  // Numbers of the epochs trained, from 0.
  std::vector<int> epoch;
  // Values at the end of each of them, by name.
  std::map<std::string, std::vector<double>> history;

  // The first loss or metric that was NaN or infinite.
  std::optional<NonFiniteValue> first_non_finite;

  // An operator has ended training before its end.
  bool is_stopped = false;

  int64_t step_count = 0;
  int64_t example_count = 0;
  // Spent training, without validation; by earlier processes too if training
  // was resumed.
  double train_seconds = 0;
  // The part of train_seconds that earlier processes spent.
  double earlier_train_seconds = 0;
  // How long steps took. Where they run in this process, the time from one
  // finished step to the next, without the first of all; otherwise the time
  // that they took on the workers.
  DurationHistogram step_durations;
  // As StepLoop::DeviceIdleShare() of training.
  std::optional<double> device_idle_share;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_HISTORY_H_
