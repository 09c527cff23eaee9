#ifndef COMMON_LEARN_TRAIN_BASE_CALLBACK_H_
#define COMMON_LEARN_TRAIN_BASE_CALLBACK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/train/base/history.h"

namespace muster {

class Model;

// The state that a callback keeps from one step or epoch to a later one.
struct CallbackState {
  std::string text = "";
  // On the host. They may share memory with the callback's own tensors, which
  // must not be modified afterwards.
  std::vector<Tensor> tensors = {};

  bool empty() const { return text.empty() && tensors.empty(); }
};

// Hooks that observe training and may change it. All are called on the thread
// that called Fit() or Evaluate(), in the order of the callbacks. If a hook
// returns an error, training ends and Fit() returns the error.
//
// If several workers train, steps end in any order. `step` is the number of
// steps that have ended, from 0 in each epoch. With steps_per_execution of N
// the batch hooks are called once for N steps: OnTrainBatchBegin() with the
// first of them, OnTrainBatchEnd() with the last.
//
// Each of several workers that train in sync has its own callbacks, which get
// the same logs. A callback must write files only if
// model.strategy()->is_chief().
//
// Equivalent to: keras.callbacks.Callback.
class Callback {
 public:
  virtual ~Callback() = default;

  virtual absl::Status OnTrainBegin(Model&) { return absl::OkStatus(); }
  // Called between steps on synchronous workers: this process has become the
  // chief, because the former one is lost, or is not the chief any more. Takes
  // over or gives up the output of the callback.
  virtual absl::Status OnChiefChange(Model&) { return absl::OkStatus(); }
  virtual absl::Status OnTrainEnd(Model&, const Logs&) {
    return absl::OkStatus();
  }
  virtual absl::Status OnEpochBegin(Model&, int /*epoch*/) {
    return absl::OkStatus();
  }
  // `logs` has the values of the epoch, including those of validation. Later
  // callbacks and History get the values that this one adds or changes.
  virtual absl::Status OnEpochEnd(Model&, int /*epoch*/, Logs&) {
    return absl::OkStatus();
  }

  // Called before and after each step. `logs` has the values of the epoch so
  // far. A change made before a step, for example of the learning rate, takes
  // effect in that step. With parameter servers, workers run ahead, so a change
  // may not affect steps that are already running. If the amount of data is
  // unknown, the end of the data is found only after one additional
  // OnTrainBatchBegin().
  virtual absl::Status OnTrainBatchBegin(Model&, int64_t /*step*/) {
    return absl::OkStatus();
  }
  virtual absl::Status OnTrainBatchEnd(Model&, int64_t /*step*/, const Logs&) {
    return absl::OkStatus();
  }

  // False if the two hooks above neither read nor change the model. If it is
  // false for all callbacks, a device begins a step before the previous one has
  // ended.
  virtual bool watches_steps() const { return true; }

  // Returns all state that hooks change and later hooks read, for example the
  // number of epochs without improvement. Checkpoints contain it. Training that
  // resumes from a checkpoint restores it to the callback at the same position,
  // which must be of the same kind. Empty if the callback has no state.
  // RestoreState() is called after OnTrainBegin(), and, within an epoch, after
  // OnEpochBegin(). It replaces the whole state. It is also called during
  // training if training is rolled back.
  virtual CallbackState SaveState() const { return {}; }
  virtual absl::Status RestoreState(Model&, const CallbackState& /*state*/) {
    return absl::OkStatus();
  }

  // Callbacks with a higher turn are called after all those with a lower one,
  // so that a callback that saves the state of others saves it at the same
  // point of training. 1: callbacks that save training. 2: the callback that
  // also saves the state of those.
  virtual int turn() const { return 0; }

  // The folders to which the callback writes. Fit() creates them, and fails
  // before training if one is not writable. Called on the chief only.
  virtual std::vector<std::string> output_folders() const { return {}; }

  // The prefixes or files that the callback has saved and that still exist,
  // newest first. Called on the chief only.
  virtual std::vector<std::string> saved() { return {}; }

  // Called after this process, or another one that trains in sync with it,
  // received a request to end. If watches_preemption() of any callback is true,
  // OnPreemption() is called between the same two steps on all processes, and
  // Fit() then returns kCancelled. Also called when a parameter server is
  // requested to end, after which Fit() continues. Also called when an operator
  // ends training, after which the epoch ends as after StopTraining();
  // TrainingProgress::is_interrupted() is then true in the hooks of the epoch's
  // end.
  virtual bool watches_preemption() const { return false; }
  virtual absl::Status OnPreemption(Model&) { return absl::OkStatus(); }

  // Called by Evaluate(), and by Fit() for validation.
  virtual absl::Status OnTestBegin(Model&) { return absl::OkStatus(); }
  // `logs` has the values of the evaluation, by the metrics' names without
  // "val_".
  virtual absl::Status OnTestEnd(Model&, const Logs&) {
    return absl::OkStatus();
  }
  virtual absl::Status OnTestBatchBegin(Model&, int64_t /*step*/) {
    return absl::OkStatus();
  }
  virtual absl::Status OnTestBatchEnd(Model&, int64_t /*step*/, const Logs&) {
    return absl::OkStatus();
  }
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_CALLBACK_H_
