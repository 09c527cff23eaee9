#ifndef COMMON_LEARN_TRAIN_CALLBACKS_LEARNING_RATE_SCHEDULER_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_LEARNING_RATE_SCHEDULER_H_

#include <functional>
#include <ostream>

#include "absl/status/status.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"

namespace muster {

// Sets the learning rate at the beginning of each epoch. Adds "learning_rate"
// to the logs of each epoch. The optimizer's learning rate must be a number,
// not a schedule.
//
//   LearningRateScheduler halve(
//       [](int epoch, double rate) { return epoch < 10 ? rate : rate / 2; });
//
// Equivalent to: keras.callbacks.LearningRateScheduler.
class LearningRateScheduler final : public Callback {
 public:
  // Returns the new learning rate, given the epoch, from 0, and the current
  // learning rate. Must return the same on all synchronous replicas.
  using Schedule = std::function<double(int epoch, double learning_rate)>;

  // `output` is borrowed; null: standard output.
  explicit LearningRateScheduler(Schedule schedule, int verbose = 0,
                                 std::ostream* output = nullptr);

  //   kInvalidArgument     the schedule returned an invalid learning rate
  //   kFailedPrecondition  the optimizer's learning rate is a schedule
  absl::Status OnEpochBegin(Model& model, int epoch) override;
  absl::Status OnEpochEnd(Model& model, int epoch, Logs& logs) override;
  bool watches_steps() const override { return false; }

 private:
  const Schedule schedule_;
  const int verbose_;
  std::ostream* const output_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_LEARNING_RATE_SCHEDULER_H_
