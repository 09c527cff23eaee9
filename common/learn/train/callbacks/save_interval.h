#ifndef COMMON_LEARN_TRAIN_CALLBACKS_SAVE_INTERVAL_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_SAVE_INTERVAL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

// Counts steps between saves, however many of them are one execution.
//
// Equivalent to: keras.callbacks.ModelCheckpoint._should_save_on_batch.
class SaveInterval {
 public:
  // `step_count` is that of save_freq; unset: never due.
  explicit SaveInterval(std::optional<int64_t> step_count)
      : step_count_(step_count) {}

  void BeginEpoch() { last_step_ = -1; }

  // `step` is the last of those that have ended, from 0 in each epoch. Returns
  // true if `step_count` of them or more have ended since it last did.
  bool IsDue(int64_t step);

  // For the state of the callback.
  std::string Save() const;
  //   kInvalidArgument  `state` is not a result of Save(); names the owner
  absl::Status Restore(absl::string_view owner, absl::string_view state);

 private:
  const std::optional<int64_t> step_count_;
  int64_t steps_since_save_ = 0;
  int64_t last_step_ = -1;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_SAVE_INTERVAL_H_
