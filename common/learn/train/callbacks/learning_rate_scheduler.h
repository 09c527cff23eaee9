#ifndef COMMON_LEARN_TRAIN_CALLBACKS_LEARNING_RATE_SCHEDULER_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_LEARNING_RATE_SCHEDULER_H_

#include <functional>
#include <ostream>

#include "absl/status/status.h"
#include "common/learn/train/callback.h"
#include "common/learn/train/history.h"

namespace muster {

// Sets the learning rate at the beginning of each epoch. Adds "learning_rate"
// to the logs of each epoch. The optimizer must have a number for a learning
// rate, not a schedule.
//
//   LearningRateScheduler halve(
//       [](int epoch, double rate) { return epoch < 10 ? rate : rate / 2; });
//
// Equivalent to: keras.callbacks.LearningRateScheduler.
class LearningRateScheduler final : public Callback {
 public:
  // From the epoch, from 0, and the learning rate at hand to the new one. Where
  // replicas train in sync it must say the same on all of them.
  using Schedule = std::function<double(int epoch, double learning_rate)>;

  // `output` is borrowed; null: standard output.
  explicit LearningRateScheduler(Schedule schedule, int verbose = 0,
                                 std::ostream* output = nullptr);

  //   kInvalidArgument     the schedule gave what is no learning rate
  //   kFailedPrecondition  the optimizer has a schedule of its own
  absl::Status OnEpochBegin(Model& model, int epoch) override;
  absl::Status AddEpochLogs(Model& model, Logs* logs) override;

 private:
  const Schedule schedule_;
  const int verbose_;
  std::ostream* const output_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_LEARNING_RATE_SCHEDULER_H_
