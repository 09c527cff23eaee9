#ifndef COMMON_LEARN_TRAIN_CALLBACKS_REDUCE_LR_ON_PLATEAU_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_REDUCE_LR_ON_PLATEAU_H_

#include <optional>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/callbacks/monitor.h"

namespace muster {

struct ReduceLROnPlateauOptions {
  std::string monitor = "val_loss";
  // The factor by which the learning rate is multiplied; below 1.
  double factor = 0.1;
  // Epochs without improvement before a reduction.
  int patience = 10;
  int verbose = 0;
  MonitorMode mode = MonitorMode::kAuto;
  double min_delta = 1e-4;
  // Epochs that are not counted after a reduction.
  int cooldown = 0;
  double min_lr = 0;
  std::ostream* output = nullptr;  // Borrowed; null: standard output.

  void VisitConfig(ConfigVisitor& visitor);
};

// Reduces the learning rate when a value no longer improves. Adds
// "learning_rate" to the logs of each epoch.
//
// Equivalent to: keras.callbacks.ReduceLROnPlateau.
class ReduceLROnPlateau final : public Callback {
 public:
  explicit ReduceLROnPlateau(ReduceLROnPlateauOptions options);

  //   kInvalidArgument  an option is invalid; names it
  static absl::Status CheckOptions(const ReduceLROnPlateauOptions& options);

  // In addition to CheckOptions():
  //   kFailedPrecondition  the learning rate is a schedule
  absl::Status OnTrainBegin(Model& model) override;
  absl::Status OnEpochEnd(Model& model, int epoch, Logs& logs) override;

  bool watches_steps() const override { return false; }

  CallbackState SaveState() const override;
  absl::Status RestoreState(Model& model, const CallbackState& state) override;

 private:
  bool IsCoolingDown() const { return cooldown_left_ > 0; }
  // Reduces the learning rate and resets the counts, unless it is at min_lr.
  absl::Status Reduce(Model& model, int epoch);

  const ReduceLROnPlateauOptions options_;
  std::optional<Monitor> monitor_;  // Set in OnTrainBegin().
  int wait_ = 0;
  int cooldown_left_ = 0;
  std::optional<double> best_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_REDUCE_LR_ON_PLATEAU_H_
