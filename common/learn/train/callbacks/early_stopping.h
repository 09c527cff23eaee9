#ifndef COMMON_LEARN_TRAIN_CALLBACKS_EARLY_STOPPING_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_EARLY_STOPPING_H_

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/callbacks/monitor.h"

namespace muster {

struct EarlyStoppingOptions {
  std::string monitor = "val_loss";
  double min_delta = 0;
  // Epochs without improvement after which training stops.
  int patience = 0;
  int verbose = 0;
  MonitorMode mode = MonitorMode::kAuto;
  // A value that an epoch must improve on to reset the patience.
  std::optional<double> baseline = std::nullopt;
  // At the end, restores the weights of the best epoch.
  bool restore_best_weights = false;
  // Earlier epochs are ignored.
  int start_from_epoch = 0;
  std::ostream* output = nullptr;  // Borrowed; null: standard output.

  void VisitConfig(ConfigVisitor& visitor);
};

// Stops training when a value no longer improves. An epoch that does not log
// the value is ignored, with a warning.
//
// Equivalent to: keras.callbacks.EarlyStopping.
class EarlyStopping final : public Callback {
 public:
  explicit EarlyStopping(EarlyStoppingOptions options);

  //   kInvalidArgument  an option is invalid; names it
  static absl::Status CheckOptions(const EarlyStoppingOptions& options);

  absl::Status OnTrainBegin(Model& model) override;
  absl::Status OnEpochEnd(Model& model, int epoch, Logs& logs) override;
  absl::Status OnTrainEnd(Model& model, const Logs& logs) override;

  bool watches_steps() const override { return false; }

  // With the weights of the best epoch. A state without them, which was saved
  // without restore_best_weights, is restored without the best value: the next
  // epoch is the best one then, with a warning.
  CallbackState SaveState() const override;
  absl::Status RestoreState(Model& model, const CallbackState& state) override;

  // The epoch after which training was stopped, from 0.
  std::optional<int> stopped_epoch() const { return stopped_epoch_; }
  std::optional<double> best() const { return best_; }

 private:
  absl::Status KeepWeights(const Model& model, int epoch);

  const EarlyStoppingOptions options_;
  std::optional<Monitor> monitor_;  // Set in OnTrainBegin().
  int wait_ = 0;                    // Epochs since the last improvement.
  std::optional<int> stopped_epoch_;
  std::optional<double> best_;
  int best_epoch_ = 0;
  std::vector<Tensor> best_weights_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_EARLY_STOPPING_H_
