#include "common/learn/train/callbacks/early_stopping.h"

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

constexpr char kEarlyStoppingName[] = "EarlyStopping";
constexpr int kNotStopped = -1;

}  // namespace

void EarlyStoppingOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("monitor", monitor);
  visitor.Visit("min_delta", min_delta);
  visitor.Visit("patience", patience);
  visitor.Visit("verbose", verbose);
  visitor.Visit(Described("mode", kMonitorModeDescription), mode,
                kMonitorModeNames);
  visitor.Visit("baseline", baseline);
  visitor.Visit("restore_best_weights", restore_best_weights);
  visitor.Visit("start_from_epoch", start_from_epoch);
}

EarlyStopping::EarlyStopping(EarlyStoppingOptions options)
    : options_(std::move(options)) {}

absl::Status EarlyStopping::CheckOptions(const EarlyStoppingOptions& options) {
  if (options.patience < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(kEarlyStoppingName, ": patience must be at least 0, got ",
                     options.patience));
  }
  return absl::OkStatus();
}

absl::Status EarlyStopping::OnTrainBegin(Model& model) {
  RETURN_IF_ERROR(CheckOptions(options_));
  ASSIGN_OR_RETURN(
      monitor_,
      Monitor::Create(kEarlyStoppingName, options_.monitor, options_.mode,
                      model.progress()->DirectionOf(options_.monitor),
                      options_.min_delta));
  wait_ = 0;
  stopped_epoch_.reset();
  best_.reset();
  best_epoch_ = 0;
  best_weights_.clear();
  return absl::OkStatus();
}

absl::Status EarlyStopping::OnEpochEnd(Model& model, int epoch, Logs& logs) {
  const std::optional<double> current = monitor_->Find(logs);
  if (!current.has_value()) {
    LOG(WARNING) << "EarlyStopping monitors \"" << options_.monitor
                 << "\", which is not logged. Available: " << NamesIn(logs);
    return absl::OkStatus();
  }
  if (epoch < options_.start_from_epoch) return absl::OkStatus();
  if (options_.restore_best_weights && best_weights_.empty()) {
    RETURN_IF_ERROR(KeepWeights(model, epoch));
  }

  ++wait_;
  if (monitor_->IsImprovement(*current, best_)) {
    best_ = current;
    best_epoch_ = epoch;
    if (options_.restore_best_weights) {
      RETURN_IF_ERROR(KeepWeights(model, epoch));
    }
    const bool is_good = !options_.baseline.has_value() ||
                         monitor_->IsImprovement(*current, options_.baseline);
    if (is_good) wait_ = 0;
    return absl::OkStatus();
  }
  // The first epoch has no reference to compare with.
  if (wait_ >= options_.patience && epoch > 0) {
    stopped_epoch_ = epoch;
    model.StopTraining();
  }
  return absl::OkStatus();
}

absl::Status EarlyStopping::OnTrainEnd(Model& model, const Logs&) {
  const bool speaks = options_.verbose > 0;
  if (stopped_epoch_.has_value() && speaks) {
    SayOnce(model, options_.output,
            absl::StrCat("Epoch ", *stopped_epoch_ + 1, ": early stopping"));
  }
  if (best_weights_.empty()) return absl::OkStatus();
  if (speaks) {
    SayOnce(model, options_.output,
            absl::StrCat("Restoring model weights from the end of the best "
                         "epoch: ",
                         best_epoch_ + 1, "."));
  }
  return model.SetWeights(best_weights_);
}

CallbackState EarlyStopping::SaveState() const {
  return {
      .text = SaveCounts(
          {wait_, best_epoch_, stopped_epoch_.value_or(kNotStopped)}, best_),
      .tensors = best_weights_};
}

absl::Status EarlyStopping::RestoreState(Model&, const CallbackState& state) {
  int stopped_epoch = kNotStopped;
  RETURN_IF_ERROR(RestoreCounts(kEarlyStoppingName, state.text,
                                {&wait_, &best_epoch_, &stopped_epoch},
                                &best_));
  stopped_epoch_.reset();
  if (stopped_epoch != kNotStopped) stopped_epoch_ = stopped_epoch;
  best_weights_.clear();
  if (!options_.restore_best_weights) return absl::OkStatus();
  best_weights_ = state.tensors;
  if (best_weights_.empty() && best_.has_value()) {
    LOG(WARNING) << kEarlyStoppingName << ": the weights of the best epoch, "
                 << best_epoch_ + 1
                 << ", were not saved; the best epoch is one of those to come";
    best_.reset();
  }
  return absl::OkStatus();
}

absl::Status EarlyStopping::KeepWeights(const Model& model, int epoch) {
  ASSIGN_OR_RETURN(best_weights_, model.GetWeights());
  best_epoch_ = epoch;
  return absl::OkStatus();
}

}  // namespace muster
