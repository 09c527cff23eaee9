#ifndef COMMON_TRAIN_CALLBACK_H_
#define COMMON_TRAIN_CALLBACK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/train/history.h"

namespace muster {

class Model;

// Is told how training goes, and may change it. Everything is called on the
// thread that called Fit(). An error ends training and comes out of Fit().
//
// Where several workers train, steps end in any order; `step` counts those that
// have ended.
//
// Equivalent to: keras.callbacks.Callback.
class Callback {
 public:
  virtual ~Callback() = default;

  virtual absl::Status OnTrainBegin(Model&) { return absl::OkStatus(); }
  virtual absl::Status OnTrainEnd(Model&, const Logs&) {
    return absl::OkStatus();
  }
  virtual absl::Status OnEpochBegin(Model&, int /*epoch*/) {
    return absl::OkStatus();
  }
  // `logs` has the values of the epoch, those of validation among them.
  virtual absl::Status OnEpochEnd(Model&, int /*epoch*/, const Logs&) {
    return absl::OkStatus();
  }
  // After each step; `logs` has the values of the epoch so far.
  virtual absl::Status OnTrainBatchEnd(Model&, int64_t /*step*/, const Logs&) {
    return absl::OkStatus();
  }
};

}  // namespace muster

#endif  // COMMON_TRAIN_CALLBACK_H_
