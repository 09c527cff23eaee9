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

// What a callback carries from one step or epoch to a later one.
struct CallbackState {
  std::string text = "";
  // On the host. They share the memory of the callback's, which must not be
  // written to afterwards.
  std::vector<Tensor> tensors = {};

  bool empty() const { return text.empty() && tensors.empty(); }
};

// Is told how training goes, and may change it. Everything is called on the
// thread that called Fit() or Evaluate(), in the order of the callbacks. An
// error ends training and comes out of Fit().
//
// Where several workers train, steps end in any order; `step` counts those that
// have ended, from 0 in each epoch. With steps_per_execution of N the batch
// hooks are called once for N steps: OnTrainBatchBegin() with the first of
// them, OnTrainBatchEnd() with the last.
//
// Replicas that train in sync each have their callbacks, and see the same logs.
// One that writes files does so only where model.strategy()->is_chief().
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
  // Adds values of its own to those of an epoch that has ended, before any
  // callback and History get them.
  virtual absl::Status AddEpochLogs(Model&, Logs* /*logs*/) {
    return absl::OkStatus();
  }
  // `logs` has the values of the epoch, those of validation among them.
  virtual absl::Status OnEpochEnd(Model&, int /*epoch*/, const Logs&) {
    return absl::OkStatus();
  }

  // Before and after each step; `logs` has the values of the epoch so far. What
  // is changed before a step, the learning rate for example, holds in it. On
  // parameter servers workers run ahead: steps that are under way when
  // something is changed may have ended before. Where it was unknown how much
  // data there is, the end of the data is found after one OnTrainBatchBegin()
  // more.
  virtual absl::Status OnTrainBatchBegin(Model&, int64_t /*step*/) {
    return absl::OkStatus();
  }
  virtual absl::Status OnTrainBatchEnd(Model&, int64_t /*step*/, const Logs&) {
    return absl::OkStatus();
  }

  // False if the two hooks above neither read nor change the model. If that is
  // so of all callbacks, a device begins a step before the last one has ended.
  virtual bool watches_steps() const { return true; }

  // Everything that the hooks read and that earlier hooks have changed: epochs
  // without improvement, for example. It is saved in checkpoints, for training
  // that continues from there with a callback of the same kind in the same
  // place. Empty: the callback has no state. RestoreState() is called after
  // OnTrainBegin(), and, within an epoch, after OnEpochBegin(). It replaces all
  // of the state, also during training if training is rolled back.
  virtual CallbackState SaveState() const { return {}; }
  virtual absl::Status RestoreState(Model&, const CallbackState& /*state*/) {
    return absl::OkStatus();
  }

  // Callbacks of a later turn are called after all those of earlier ones, so
  // that what one saves of the others is of the same moment: 1 for those that
  // save training, 2 for the one that saves those too.
  virtual int turn() const { return 0; }

  // The folders that it writes to. Fit() makes them, and does not begin while
  // one of them cannot be written to. Asked on the chief alone.
  virtual std::vector<std::string> output_folders() const { return {}; }

  // The prefixes or files that it has saved and that are still there, newest
  // first. Asked on the chief alone.
  virtual std::vector<std::string> saved() { return {}; }

  // The process, or another that trains in sync with it, was told to end.
  // Called between two steps, the same on all of them, where one of the
  // callbacks watches for it; Fit() ends afterwards, with kCancelled. Also
  // called when a parameter server was told to end, after which Fit()
  // continues, and when an operator ends training, after which the epoch ends
  // as after StopTraining(); the hooks of its end see
  // TrainingProgress::is_interrupted() then.
  virtual bool watches_preemption() const { return false; }
  virtual absl::Status OnPreemption(Model&) { return absl::OkStatus(); }

  // Of Evaluate(), and of the validation in Fit().
  virtual absl::Status OnTestBegin(Model&) { return absl::OkStatus(); }
  // `logs` has the values of the evaluation, by the metrics' own names.
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
