#include <any>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/compute/optimizers/complete_optimizer.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/metric_direction.h"
#include "common/learn/train/checkpoints/shared_progress.h"
#include "common/learn/train/fit_run.h"
#include "common/learn/train/model.h"
#include "proto/optimizer.pb.h"
#include "proto/training_state.pb.h"

// The progress of FitRun: how it is saved, resumed and rolled back.
namespace muster {

TrainingState FitRun::State() const {
  proto::TrainingState state;
  state.set_epoch(epoch_ + (epoch_has_ended_ ? 1 : 0));
  double seconds = history_.train_seconds;
  int64_t example_count = history_.example_count;
  if (!epoch_has_ended_) {
    state.set_step_in_epoch(epoch_steps_);
    for (const std::vector<double>& sums : sums_.sums()) {
      state.add_metric_sums()->mutable_values()->Assign(sums.begin(),
                                                        sums.end());
    }
    if (is_validating_) {
      // Training that resumes adds the examples of the epoch again when its
      // steps end.
      example_count -= sums_.example_count();
    } else if (epoch_steps_ > 0) {
      seconds += absl::ToDoubleSeconds(options_.clock->Now() - epoch_start_);
    }
  }
  StepPosition position;
  if (const SeekableLoop* const seekable = loop_->seekable();
      seekable != nullptr) {
    // The loop may already be at the next pass through the data, from which a
    // resumed epoch would continue training.
    position = is_validating_ ? last_step_ : seekable->position();
  }
  state.mutable_position()->set_pass(position.pass);
  state.mutable_position()->set_element(position.element);
  state.mutable_position()->set_step(position.step);
  state.mutable_epoch_numbers()->Assign(history_.epoch.begin(),
                                        history_.epoch.end());
  for (const auto& [name, values] : history_.history) {
    auto* const column = state.add_columns();
    column->set_name(name);
    column->mutable_values()->Assign(values.begin(), values.end());
  }
  state.set_step_count(history_.step_count);
  state.set_example_count(example_count);
  state.set_train_seconds(seconds);
  *state.mutable_optimizer() = compiled_.options().optimizer.message();
  state.set_is_stopped(control_->stops && !control_->is_interrupted);
  std::vector<std::vector<Tensor>> tensors;
  for (const Callback* callback : options_.callbacks) {
    CallbackState saved = callback->SaveState();
    state.add_callbacks(std::move(saved.text));
    state.add_callback_tensor_counts(
        static_cast<int64_t>(saved.tensors.size()));
    tensors.push_back(std::move(saved.tensors));
  }
  return TrainingState(std::move(state), std::move(tensors));
}

std::optional<MetricDirection> FitRun::DirectionOf(
    absl::string_view name) const {
  absl::string_view metric = name;
  if (validation_ != nullptr && absl::ConsumePrefix(&metric, "val_")) {
    const auto direction = muster::DirectionOf(validation_->results(), metric);
    if (direction.has_value()) return direction;
  }
  return muster::DirectionOf(sums_.results(), absl::StripPrefix(name, "val_"));
}

absl::Status FitRun::ResumeFrom(const TrainingState& state) {
  if (history_.step_count > 0) {
    return absl::FailedPreconditionError(
        "training continues from a checkpoint before its first step only");
  }
  resumed_state_ = state;
  return absl::OkStatus();
}

absl::Status FitRun::TakeContinuedProgress() {
  if (GroupMembership* const membership = strategy_.membership();
      membership != nullptr) {
    if (!membership->is_joining()) return membership->NoteTrainingBegins();
    RETURN_IF_ERROR(membership->Join());
    ASSIGN_OR_RETURN(resumed_state_, ShareProgress(*membership, State()));
    is_continued_ = true;
    const proto::TrainingState& state = resumed_state_->message();
    LOG(INFO) << "joins training in epoch " << state.epoch() + 1
              << " after step " << state.step_in_epoch();
    return absl::OkStatus();
  }
  TrainingRecovery* const recovery = strategy_.recovery();
  if (recovery == nullptr) return absl::OkStatus();
  const std::any progress = recovery->TakeContinuedProgress();
  const auto* const state = std::any_cast<TrainingState>(&progress);
  if (state == nullptr) return absl::OkStatus();
  resumed_state_ = *state;
  is_continued_ = true;
  return absl::OkStatus();
}

absl::Status FitRun::TakeInJoiners() {
  GroupMembership* const membership = strategy_.membership();
  RETURN_IF_ERROR(membership->TakeIn());
  RETURN_IF_ERROR(ShareProgress(*membership, State()).status());
  return NoteChief();
}

absl::Status FitRun::Resume() {
  if (!resumed_state_.has_value()) return absl::OkStatus();
  const proto::TrainingState& state = resumed_state_->message();
  epoch_ = static_cast<int>(state.epoch());
  history_.epoch.assign(state.epoch_numbers().begin(),
                        state.epoch_numbers().end());
  for (const proto::TrainingState::Column& column : state.columns()) {
    history_.history[column.name()].assign(column.values().begin(),
                                           column.values().end());
    if (column.values_size() > 0) {
      logs_[column.name()] = *column.values().rbegin();
    }
  }
  for (const proto::TrainingState::Epoch& epoch : state.history()) {
    history_.epoch.push_back(static_cast<int>(epoch.number()));
    for (const auto& [name, value] : epoch.logs()) {
      history_.history[name].push_back(value);
      logs_[name] = value;
    }
  }
  history_.step_count = state.step_count();
  history_.example_count = state.example_count();
  history_.train_seconds = state.train_seconds();
  history_.earlier_train_seconds = state.train_seconds();
  // Workers that read their own copies of the data have no common position.
  if (SeekableLoop* const seekable = loop_->seekable(); seekable != nullptr) {
    const proto::TrainingState::Position& position = state.position();
    last_step_ = {.pass = position.pass(),
                  .element = position.element(),
                  .step = position.step()};
    RETURN_IF_ERROR(seekable->Seek(last_step_));
  }
  if (state.step_in_epoch() > 0) return absl::OkStatus();
  RETURN_IF_ERROR(RestoreCallbacks());
  control_->stops = state.is_stopped();
  if (control_->stops) WarnStopped();
  resumed_state_.reset();
  return absl::OkStatus();
}

absl::Status FitRun::BeginSteps() {
  sums_.Reset();
  epoch_steps_ = 0;
  group_steps_ = 0;
  if (!resumed_state_.has_value()) return absl::OkStatus();
  const proto::TrainingState& state = resumed_state_->message();
  std::vector<std::vector<double>> sums;
  for (const proto::TrainingState::Sums& each : state.metric_sums()) {
    sums.emplace_back(each.values().begin(), each.values().end());
  }
  RETURN_IF_ERROR(sums_.Restore(std::move(sums)));
  epoch_steps_ = state.step_in_epoch();
  // Groups are counted from the beginning of the epoch, wherever it was
  // interrupted.
  if (loop_->grouping() == nullptr) {
    group_steps_ = epoch_steps_ % steps_per_execution_;
  }
  RETURN_IF_ERROR(RestoreCallbacks());
  control_->stops = state.is_stopped();
  resumed_state_.reset();
  return absl::OkStatus();
}

void FitRun::WarnStopped() const {
  if (!strategy_.is_chief()) return;
  LOG(WARNING) << "training that was saved after epoch " << epoch_
               << " had been ended by a callback, and is not continued; remove "
                  "what was saved to train again";
}

absl::Status FitRun::RollBackAfter(const absl::Status& failure) {
  TrainingRecovery* const recovery = strategy_.recovery();
  if (recovery == nullptr || has_diverged_) return failure;
  ASSIGN_OR_RETURN(const std::optional<Rollback> rollback,
                   recovery->AwaitRollback(failure));
  if (!rollback.has_value()) return failure;
  const int epoch_before = epoch_;
  const int64_t steps_before = epoch_steps_;
  const auto durations = history_.step_durations;
  history_ = History();
  history_.step_durations = durations;
  logs_.clear();
  sums_.Reset();
  epoch_ = options_.initial_epoch;
  epoch_steps_ = 0;
  epoch_has_ended_ = false;
  const auto* const progress =
      std::any_cast<TrainingState>(&rollback->progress);
  resumed_state_ = progress != nullptr ? *progress : beginning_;
  const int64_t steps = resumed_state_->message().step_in_epoch();
  RETURN_IF_ERROR(Resume());
  LOG(WARNING) << "training is rolled back from epoch " << epoch_before + 1
               << ", step " << steps_before << ", to epoch " << epoch_ + 1
               << ", step " << steps << ": " << rollback->undone_step_count
               << " steps are undone";
  return absl::OkStatus();
}

absl::Status FitRun::RestoreCallbacks() const {
  // Changes at the beginning of the epoch were made before the state was saved,
  // so the saved state replaces them.
  const proto::TrainingState& state = resumed_state_->message();
  const std::optional<double> rate = ConstantLearningRate(state.optimizer());
  if (rate.has_value()) RETURN_IF_ERROR(model_->SetLearningRate(*rate));
  const auto& states = state.callbacks();
  const auto& tensors = resumed_state_->callback_tensors();
  const std::vector<Callback*>& callbacks = options_.callbacks;
  if (static_cast<size_t>(states.size()) != callbacks.size()) {
    LOG(WARNING) << "training was saved with " << states.size()
                 << " callbacks and continues with " << callbacks.size()
                 << ": they start without their saved state";
    return absl::OkStatus();
  }
  for (size_t i = 0; i < callbacks.size(); ++i) {
    CallbackState saved{.text = states.Get(static_cast<int>(i))};
    if (i < tensors.size()) saved.tensors = tensors[i];
    if (saved.empty()) continue;
    RETURN_IF_ERROR(callbacks[i]->RestoreState(*model_, saved));
  }
  return absl::OkStatus();
}

}  // namespace muster
