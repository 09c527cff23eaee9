#include "common/learn/train/callbacks/reduce_lr_on_plateau.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/train/callbacks/message.h"
#include "common/learn/train/checkpoints/training_progress.h"
#include "common/learn/train/model.h"

namespace muster {
namespace {

constexpr char kReduceLROnPlateauName[] = "ReduceLROnPlateau";

absl::Status ReduceLROnPlateauError(absl::string_view option,
                                    absl::string_view expected, double given) {
  return absl::InvalidArgumentError(absl::StrCat(kReduceLROnPlateauName, ": ",
                                                 option, " must be ", expected,
                                                 ", got ", given));
}

}  // namespace

void ReduceLROnPlateauOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("monitor", monitor);
  visitor.Visit("factor", factor);
  visitor.Visit("patience", patience);
  visitor.Visit("verbose", verbose);
  visitor.Visit(Described("mode", kMonitorModeDescription), mode,
                kMonitorModeNames);
  visitor.Visit("min_delta", min_delta);
  visitor.Visit("cooldown", cooldown);
  visitor.Visit("min_lr", min_lr);
}

ReduceLROnPlateau::ReduceLROnPlateau(ReduceLROnPlateauOptions options)
    : options_(std::move(options)) {}

absl::Status ReduceLROnPlateau::CheckOptions(
    const ReduceLROnPlateauOptions& options) {
  // The comparisons also reject NaN.
  if (!(options.factor < 1.0 && options.factor >= 0)) {
    return ReduceLROnPlateauError("factor", "below 1 and not negative",
                                  options.factor);
  }
  if (!(options.min_lr >= 0)) {
    return ReduceLROnPlateauError("min_lr", "at least 0", options.min_lr);
  }
  if (options.patience < 0) {
    return ReduceLROnPlateauError("patience", "at least 0", options.patience);
  }
  if (options.cooldown < 0) {
    return ReduceLROnPlateauError("cooldown", "at least 0", options.cooldown);
  }
  return absl::OkStatus();
}

absl::Status ReduceLROnPlateau::OnTrainBegin(Model& model) {
  RETURN_IF_ERROR(CheckOptions(options_));
  ASSIGN_OR_RETURN(
      monitor_,
      Monitor::Create(kReduceLROnPlateauName, options_.monitor, options_.mode,
                      model.progress()->DirectionOf(options_.monitor),
                      options_.min_delta));
  wait_ = 0;
  cooldown_left_ = 0;
  best_.reset();
  // A schedule cannot be set. Report it now, not after `patience` epochs.
  ASSIGN_OR_RETURN(const double rate, model.learning_rate());
  return model.SetLearningRate(rate);
}

absl::Status ReduceLROnPlateau::OnEpochEnd(Model& model, int epoch,
                                           Logs& logs) {
  ASSIGN_OR_RETURN(logs["learning_rate"], model.learning_rate());
  const std::optional<double> current = monitor_->Find(logs);
  if (!current.has_value()) {
    LOG(WARNING) << "ReduceLROnPlateau monitors \"" << options_.monitor
                 << "\", which is not logged. Available: " << NamesIn(logs);
    return absl::OkStatus();
  }
  if (IsCoolingDown()) {
    --cooldown_left_;
    wait_ = 0;
  }
  if (monitor_->IsImprovement(*current, best_)) {
    best_ = current;
    wait_ = 0;
    return absl::OkStatus();
  }
  if (IsCoolingDown()) return absl::OkStatus();
  ++wait_;
  return wait_ >= options_.patience ? Reduce(model, epoch) : absl::OkStatus();
}

absl::Status ReduceLROnPlateau::Reduce(Model& model, int epoch) {
  ASSIGN_OR_RETURN(const double old_rate, model.learning_rate());
  if (old_rate <= options_.min_lr) return absl::OkStatus();
  const double rate = std::max(old_rate * options_.factor, options_.min_lr);
  RETURN_IF_ERROR(model.SetLearningRate(rate));
  if (options_.verbose > 0) {
    SayOnce(model, options_.output,
            absl::StrCat("\nEpoch ", epoch + 1,
                         ": ReduceLROnPlateau reducing learning rate to ",
                         ShortestText(rate), "."));
  }
  cooldown_left_ = options_.cooldown;
  wait_ = 0;
  return absl::OkStatus();
}

CallbackState ReduceLROnPlateau::SaveState() const {
  return {.text = SaveCounts({wait_, cooldown_left_}, best_)};
}

absl::Status ReduceLROnPlateau::RestoreState(Model&,
                                             const CallbackState& state) {
  return RestoreCounts(kReduceLROnPlateauName, state.text,
                       {&wait_, &cooldown_left_}, &best_);
}

}  // namespace muster
