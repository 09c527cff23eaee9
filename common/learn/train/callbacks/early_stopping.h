#ifndef COMMON_LEARN_TRAIN_CALLBACKS_EARLY_STOPPING_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_EARLY_STOPPING_H_

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/train/callback.h"
#include "common/learn/train/callbacks/monitor.h"
#include "common/learn/train/history.h"

namespace muster {

struct EarlyStoppingOptions {
  std::string monitor = "val_loss";
  double min_delta = 0;
  // Epochs without improvement after which training stops.
  int patience = 0;
  int verbose = 0;
  MonitorMode mode = MonitorMode::kAuto;
  // What an epoch has to be better than for patience to begin anew.
  std::optional<double> baseline = std::nullopt;
  // At the end the weights become those of the best epoch.
  bool restore_best_weights = false;
  // Epochs before this one are not looked at.
  int start_from_epoch = 0;
  std::ostream* output = nullptr;  // Borrowed; null: standard output.
};

// Stops training when a value no longer gets better. An epoch that does not log
// the value is skipped, with a warning.
//
// Equivalent to: keras.callbacks.EarlyStopping.
class EarlyStopping final : public Callback {
 public:
  explicit EarlyStopping(EarlyStoppingOptions options);

  //   kInvalidArgument  an option makes no sense; names it
  static absl::Status CheckOptions(const EarlyStoppingOptions& options);

  absl::Status OnTrainBegin(Model& model) override;
  absl::Status OnEpochEnd(Model& model, int epoch, const Logs& logs) override;
  absl::Status OnTrainEnd(Model& model, const Logs& logs) override;

  // All but the weights of the best epoch: where training went on and has not
  // got better since, those it went on with stand for them.
  std::string SaveState() const override;
  absl::Status RestoreState(const std::string& state) override;

  // The epoch after which training was stopped, from 0.
  std::optional<int> stopped_epoch() const { return stopped_epoch_; }
  std::optional<double> best() const { return best_; }

 private:
  absl::Status KeepWeights(const Model& model, int epoch);

  const EarlyStoppingOptions options_;
  std::optional<Monitor> monitor_;  // Set in OnTrainBegin().
  int wait_ = 0;                    // Epochs since the last good one.
  std::optional<int> stopped_epoch_;
  std::optional<double> best_;
  int best_epoch_ = 0;
  std::vector<Tensor> best_weights_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_EARLY_STOPPING_H_
