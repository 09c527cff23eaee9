#include "common/learn/train/fit_run.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/core/system/trace.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/class_weights.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/log_lists.h"
#include "common/learn/train/base/non_finite.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/base/step_graphs.h"
#include "common/learn/train/base/step_parts.h"
#include "common/learn/train/base/step_results.h"
#include "common/learn/train/call_each.h"
#include "common/learn/train/epoch_plan.h"
#include "common/learn/train/evaluate_run.h"
#include "common/learn/train/metric_sums.h"
#include "common/learn/train/model.h"
#include "common/learn/train/named_inputs.h"
#include "common/learn/train/newest_finite.h"
#include "common/learn/train/output_folders.h"
#include "common/net/process/job_control.h"
#include "common/net/process/preemption_notice.h"

namespace muster {
namespace {

absl::Status CheckFitOptions(const FitOptions& options) {
  const auto refuse = [](absl::string_view what, int64_t least, int64_t given) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Fit: ", what, " must be at least ", least, ", got ", given));
  };
  if (options.epochs < 1) return refuse("epochs", 1, options.epochs);
  if (options.initial_epoch < 0) {
    return refuse("initial_epoch", 0, options.initial_epoch);
  }
  if (!options.validation_freq.is_valid()) {
    return absl::InvalidArgumentError(
        "Fit: validation_freq must be a number of at least 1, or epochs "
        "counted from 1");
  }
  if (options.validation_steps.has_value() && *options.validation_steps < 1) {
    return refuse("validation_steps", 1, *options.validation_steps);
  }
  RETURN_IF_ERROR(CheckClassWeights(options.class_weight));
  if (options.steps_per_epoch.has_value() && *options.steps_per_epoch < 1) {
    return refuse("steps_per_epoch", 1, *options.steps_per_epoch);
  }
  return absl::OkStatus();
}

}  // namespace

FitRun::FitRun(Model* model, const CompiledModel& compiled,
               TrainingControl* control, const Dataset& data,
               const FitOptions& options)
    : model_(model),
      compiled_(compiled),
      control_(control),
      strategy_(*compiled.strategy()),
      data_(data),
      options_(options),
      steps_per_execution_(compiled.options().steps_per_execution),
      sums_(StepResults()),
      epoch_(options.initial_epoch),
      requests_(
          model, &strategy_, control, [this] { return SaveBeforeEnd(); },
          [this] { return TakeInJoiners(); }),
      monitor_(options.epochs, options.clock) {
  control_->progress = this;
  control_->is_interrupted = false;
}

FitRun::~FitRun() {
  control_->progress = nullptr;
  TrainingRecovery* const recovery = strategy_.recovery();
  if (loop_ == nullptr || recovery == nullptr) return;
  recovery->SetPreemptionSaver(nullptr);
  recovery->SetProgressSource(nullptr);
}

absl::Status FitRun::SaveBeforeEnd() {
  RETURN_IF_ERROR(
      CallEach(options_.callbacks, &Callback::OnPreemption, *model_));
  if (options_.on_preemption == nullptr) return absl::OkStatus();
  if (compiled_.optimizers().use_ema()) {
    RETURN_IF_ERROR(strategy_.variables().AssignAverages());
  }
  return options_.on_preemption(*model_);
}

void FitRun::SaveBeforeStop() {
  const absl::Status saved =
      CallEach(options_.callbacks, &Callback::OnPreemption, *model_);
  if (saved.ok()) return;
  LOG(WARNING) << "training ends, as an operator has asked, and could not be "
                  "saved: "
               << saved.message();
}

absl::StatusOr<History> FitRun::Run() {
  const absl::Status trained = Train();
  if (trained.ok()) return std::move(history_);
  if (options_.history_of_failure != nullptr) {
    *options_.history_of_failure = std::move(history_);
  }
  return trained;
}

absl::Status FitRun::Train() {
  RETURN_IF_ERROR(Start());
  const bool callbacks_watch = std::any_of(
      options_.callbacks.begin(), options_.callbacks.end(),
      [](const Callback* callback) { return callback->watches_preemption(); });
  const bool is_watched = callbacks_watch ||
                          options_.on_preemption != nullptr ||
                          strategy_.membership() != nullptr;
  std::optional<PreemptionNotice::Watch> watch;
  std::optional<JobControl::Training> controlled;
  if (loop_->stoppable() != nullptr) {
    WatchRequests(is_watched);
    if (is_watched) watch.emplace();
    if (strategy_.is_chief()) controlled.emplace(&JobControl::OfProcess());
  }
  if (TrainingRecovery* const recovery = strategy_.recovery();
      callbacks_watch && recovery != nullptr) {
    recovery->SetPreemptionSaver([this] {
      return CallEach(options_.callbacks, &Callback::OnPreemption, *model_);
    });
  }
  RETURN_IF_ERROR(TakeContinuedProgress());
  was_chief_ = strategy_.is_chief();
  RETURN_IF_ERROR(
      CallEach(options_.callbacks, &Callback::OnTrainBegin, *model_));
  beginning_ = resumed_state_.has_value() ? *resumed_state_ : State();
  RETURN_IF_ERROR(Resume());
  bool goes_on = !control_->stops;
  for (int epoch = epoch_; epoch < options_.epochs && goes_on; ++epoch) {
    epoch_ = epoch;
    const absl::StatusOr<bool> ran = RunEpoch(epoch);
    if (ran.ok()) {
      goes_on = *ran;
    } else {
      RETURN_IF_ERROR(RollBackAfter(ran.status()));
      epoch = epoch_ - 1;
      goes_on = !control_->stops;
    }
  }
  if (compiled_.optimizers().use_ema()) {
    RETURN_IF_ERROR(strategy_.variables().AssignAverages());
  }
  RETURN_IF_ERROR(
      CallEach(options_.callbacks, &Callback::OnTrainEnd, *model_, logs_));
  if (TrainingRecovery* const recovery = strategy_.recovery();
      recovery != nullptr) {
    RETURN_IF_ERROR(recovery->NoteTrained());
  }
  if (auto durations = loop_->StepDurations()) {
    history_.step_durations = *durations;
  }
  history_.device_idle_share = loop_->DeviceIdleShare();
  history_.is_stopped = control_->is_interrupted;
  return absl::OkStatus();
}

Verbosity FitRun::CurrentVerbosity() const {
  const bool is_chief = strategy_.is_chief();
  if (!is_chief && strategy_.membership() != nullptr) {
    return Verbosity::kSilent;
  }
  return ResolveVerbosity(options_.verbose, is_chief);
}

absl::Status FitRun::NoteChief() {
  const bool is_chief = strategy_.is_chief();
  if (std::exchange(was_chief_, is_chief) == is_chief) return absl::OkStatus();
  LOG(INFO) << (is_chief ? "this worker is the chief from now on"
                         : "another worker is the chief from now on");
  return CallEach(options_.callbacks, &Callback::OnChiefChange, *model_);
}

void FitRun::WatchRequests(bool is_watched) {
  const auto is_due = [this, is_watched] {
    // A stop by an operator is served once.
    const bool is_asked =
        !control_->is_interrupted && JobControl::OfProcess().has_request();
    return is_asked ||
           (is_watched && PreemptionNotice::OfProcess().was_received());
  };
  GroupMembership* const membership = strategy_.membership();
  loop_->stoppable()->StopWhen([is_due, membership] {
    return is_due() || (membership != nullptr && membership->has_joiners());
  });
  if (validation_ == nullptr) return;
  validation_->ServeWhen(is_due, [this] { return ServeRequest(); });
}

absl::Status FitRun::ServeRequest() {
  const bool was_interrupted = control_->is_interrupted;
  RETURN_IF_ERROR(requests_.Serve({.epoch = epoch_,
                                   .epoch_steps = epoch_steps_,
                                   .takes_joiners = !is_validating_}));
  if (control_->is_interrupted && !was_interrupted) SaveBeforeStop();
  return absl::OkStatus();
}

absl::Status FitRun::Start() {
  RETURN_IF_ERROR(CheckFitOptions(options_));
  if (strategy_.is_chief()) {
    RETURN_IF_ERROR(EnsureWritable(OutputFoldersOf(options_.callbacks)));
  }
  ASSIGN_OR_RETURN(plan_, PlanEpochs(data_, options_.steps_per_epoch,
                                     strategy_.draws_from_copies()));
  RETURN_IF_ERROR(plan_.data.status());
  ASSIGN_OR_RETURN(const StepParts parts,
                   compiled_.Parts(/*training=*/true, options_.class_weight));
  ASSIGN_OR_RETURN(const TracedStep step,
                   TraceTrainStep(parts, plan_.data.element_types()));
  sums_ = MetricSums(step.results);
  ASSIGN_OR_RETURN(
      loop_, strategy_.CreateLoop(step.graph, plan_.data, LoopKind::kTrain));
  // Other loops start steps without overhead, so they need no groups.
  if (GroupingLoop* const grouping = loop_->grouping(); grouping != nullptr) {
    grouping->GroupSteps(steps_per_execution_);
  }
  callbacks_watch_steps_ = std::any_of(
      options_.callbacks.begin(), options_.callbacks.end(),
      [](const Callback* callback) { return callback->watches_steps(); });
  if (OverlappingLoop* const overlapping = loop_->overlapping();
      overlapping != nullptr) {
    overlapping->OverlapWhen([this](int64_t unfinished_count) {
      return MayOverlap(unfinished_count);
    });
  }
  if (TrainingRecovery* const recovery = strategy_.recovery();
      recovery != nullptr) {
    recovery->SetProgressSource([this] { return std::any(State()); });
  }
  if (options_.validation_data.has_value()) {
    ASSIGN_OR_RETURN(
        const Dataset data,
        InOrderOfModel(*compiled_.layer(),
                       std::get<Dataset>(*options_.validation_data)));
    ASSIGN_OR_RETURN(validation_,
                     EvaluateRun::Create(model_, compiled_, data,
                                         {.steps = options_.validation_steps,
                                          .verbose = Verbosity::kSilent,
                                          .callbacks = options_.callbacks,
                                          .clock = options_.clock}));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> FitRun::RunEpoch(int epoch) {
  const bool says_epoch =
      CurrentVerbosity() != Verbosity::kSilent && options_.epochs > 1;
  if (says_epoch) {
    std::ostream& output =
        options_.output == nullptr ? std::cout : *options_.output;
    output << "Epoch " << epoch + 1 << "/" << options_.epochs << std::endl;
  }
  epoch_has_ended_ = false;
  RETURN_IF_ERROR(NoteChief());
  RETURN_IF_ERROR(
      CallEach(options_.callbacks, &Callback::OnEpochBegin, *model_, epoch));
  ProgressBar bar({.target = plan_.steps_expected,
                   .verbosity = CurrentVerbosity(),
                   .first_step_is_apart = !loop_->StepDurations().has_value(),
                   .clock = options_.clock,
                   .output = options_.output});
  RETURN_IF_ERROR(TrainSteps(&bar));
  // The data ended exactly with the previous epoch, so start the next pass.
  if (epoch_steps_ == 0 && !control_->stops) RETURN_IF_ERROR(TrainSteps(&bar));
  if (epoch_steps_ == 0 && epoch == options_.initial_epoch) {
    return absl::InvalidArgumentError(
        "the training data has no batches: there is nothing to train on");
  }
  if (!control_->stops) WarnOfShortEpoch();
  if (epoch_steps_ == 0) return false;
  // From the next epoch on, the number of steps is known.
  if (!plan_.steps_expected.has_value()) plan_.steps_expected = epoch_steps_;

  RETURN_IF_ERROR(NoteChief());
  logs_ = sums_.Values();
  ProgressValues shown = ShownValues(logs_);
  ASSIGN_OR_RETURN(const Logs validation, Validate(epoch));
  for (const auto& [name, value] : validation) {
    logs_[absl::StrCat("val_", name)] = value;
  }
  for (const auto& [name, value] : ShownValues(validation)) {
    shown.emplace_back(absl::StrCat("val_", name), value);
  }
  monitor_.EndEpoch(logs_);
  for (const auto& [name, value] : logs_) {
    RETURN_IF_ERROR(CheckFinite(name, value));
  }
  bar.Finish(epoch_steps_, shown);
  RETURN_IF_ERROR(NoteChief());
  RETURN_IF_ERROR(EndEpoch(epoch));
  ASSIGN_OR_RETURN(control_->stops,
                   strategy_.agreement().AgreeToStop(control_->stops));
  return !control_->stops;
}

absl::Status FitRun::EndEpoch(int epoch) {
  epoch_has_ended_ = true;
  history_.epoch.push_back(epoch);
  const auto former_epochs = history_.history;
  const auto record_logs = [&] {
    history_.history = former_epochs;
    for (const auto& [name, value] : logs_) {
      history_.history[name].push_back(value);
    }
  };
  record_logs();
  for (Callback* const callback : options_.callbacks) {
    RETURN_IF_ERROR(callback->OnEpochEnd(*model_, epoch, logs_));
    // A later callback may save the history.
    record_logs();
  }
  return absl::OkStatus();
}

absl::Status FitRun::TrainSteps(ProgressBar* bar) {
  RETURN_IF_ERROR(BeginSteps());
  const absl::Time start = options_.clock->Now();
  epoch_start_ = start;
  monitor_.BeginEpoch(epoch_, plan_.steps_expected);
  last_step_end_ = start;
  trace_step_start_ns_ = IsTracing() ? TraceClockNanos() : 0;
  if (control_->stops) {  // Training was stopped before the epoch was
                          // interrupted.
    history_.example_count += sums_.example_count();
    return absl::OkStatus();
  }
  // A resumed group of steps has already been announced.
  if (group_steps_ == 0) RETURN_IF_ERROR(AnnounceStep());
  const absl::StatusOr<StepLoop::Outcome> outcome = RunLoop(bar);
  history_.train_seconds +=
      absl::ToDoubleSeconds(options_.clock->Now() - start);
  history_.example_count += sums_.example_count();
  if (outcome.ok()) {
    if (outcome->was_stopped) control_->stops = true;
    // Ends the last group, in which the data ended.
    return group_steps_ > 0 ? EndGroup(bar) : absl::OkStatus();
  }
  // A callback that stops training cancels the loop. This is not an error.
  const bool was_stopped =
      control_->stops && absl::IsCancelled(outcome.status());
  return was_stopped ? absl::OkStatus() : outcome.status();
}

absl::StatusOr<StepLoop::Outcome> FitRun::RunLoop(ProgressBar* bar) {
  const int64_t steps_max =
      plan_.steps_max.value_or(std::numeric_limits<int64_t>::max());
  while (true) {
    ASSIGN_OR_RETURN(const StepLoop::Outcome outcome,
                     loop_->Run(steps_max - epoch_steps_,
                                [&](absl::Span<const Tensor> results) {
                                  return OnStep(results, bar);
                                }));
    if (!outcome.was_told_to_stop) return outcome;
    RETURN_IF_ERROR(ServeRequest());
    if (control_->stops) return outcome;
  }
}

void FitRun::WarnOfShortEpoch() {
  if (has_warned_of_short_epoch_ || !plan_.steps_expected.has_value() ||
      epoch_steps_ >= *plan_.steps_expected) {
    return;
  }
  has_warned_of_short_epoch_ = true;
  if (!strategy_.is_chief()) return;
  LOG(WARNING)
      << "the data ended after " << epoch_steps_ << " of "
      << *plan_.steps_expected << " steps of epoch " << epoch_ + 1
      << ", and so did the epoch. Repeat() lets epochs continue beyond "
         "the end of the data";
}

absl::Status FitRun::OnStep(absl::Span<const Tensor> results,
                            ProgressBar* bar) {
  RETURN_IF_ERROR(NoteChief());
  ++history_.step_count;
  ++epoch_steps_;
  ++group_steps_;
  if (const SeekableLoop* const seekable = loop_->seekable();
      seekable != nullptr) {
    last_step_ = seekable->position();
  }
  RETURN_IF_ERROR(sums_.Add(results));
  if (const auto found = sums_.NonFinite()) {
    RETURN_IF_ERROR(CheckFinite(found->first, found->second));
  }
  CheckLossScale();
  const bool ends_group = group_steps_ == steps_per_execution_ ||
                          epoch_steps_ == plan_.steps_max ||
                          epoch_steps_ == plan_.steps_expected;
  if (!ends_group) return absl::OkStatus();
  RETURN_IF_ERROR(EndGroup(bar));
  if (control_->stops) {
    return absl::CancelledError("training was stopped");
  }
  return AnnounceStep();
}

// A callback must see the variables as they are after the step for which it is
// called, which is the last step of a group or of an epoch.
bool FitRun::MayOverlap(int64_t unfinished_count) const {
  if (options_.callbacks.empty()) return true;
  const bool ends_group =
      callbacks_watch_steps_ &&
      group_steps_ + unfinished_count >= steps_per_execution_;
  return !ends_group && epoch_steps_ + unfinished_count != plan_.steps_expected;
}

absl::Status FitRun::EndGroup(ProgressBar* bar) {
  const absl::Time now = options_.clock->Now();
  // The first step of training also compiles, so its group is not counted.
  if (history_.step_count > group_steps_) {
    for (int64_t i = 0; i < group_steps_; ++i) {
      history_.step_durations.Add((now - last_step_end_) / group_steps_);
    }
  }
  monitor_.OnSteps({.count = group_steps_,
                    .duration = (now - last_step_end_) / group_steps_,
                    .end = now,
                    .step_in_epoch = epoch_steps_},
                   sums_);
  last_step_end_ = now;
  if (trace_step_start_ns_ != 0) {
    RecordTraceSpan("step", "train step", trace_step_start_ns_);
  }
  trace_step_start_ns_ = IsTracing() ? TraceClockNanos() : 0;
  group_steps_ = 0;

  const bool is_due = bar->IsDue();
  Logs logs;
  if (is_due || !options_.callbacks.empty()) logs = sums_.Values();
  bar->Update(epoch_steps_, is_due ? ShownValues(logs) : ProgressValues{});
  return CallEach(options_.callbacks, &Callback::OnTrainBatchEnd, *model_,
                  epoch_steps_ - 1, logs);
}

absl::Status FitRun::CheckFinite(const std::string& name, double value) {
  if (std::isfinite(value)) return absl::OkStatus();
  const NonFiniteValue found = {
      .name = name, .value = value, .epoch = epoch_, .step = epoch_steps_};
  const bool is_first = !history_.first_non_finite.has_value();
  if (is_first) history_.first_non_finite = found;
  const bool is_loss = IsLoss(name);
  if (is_loss && options_.fail_on_non_finite) {
    has_diverged_ = true;
    if (!strategy_.is_chief()) return NonFiniteError(found);
    return NonFiniteError(found, DescribeNewestFinite(options_.callbacks));
  }
  if (is_first && strategy_.is_chief()) {
    LOG(WARNING) << ToString(found) << "; training continues"
                 << (is_loss ? ". TerminateOnNaN would end it here" : "");
  }
  return absl::OkStatus();
}

bool FitRun::IsLoss(absl::string_view name) const {
  absl::ConsumePrefix(&name, "val_");
  const std::vector<std::string>& losses = sums_.results().losses;
  return name == "loss" ||
         std::find(losses.begin(), losses.end(), name) != losses.end();
}

void FitRun::CheckLossScale() {
  const std::optional<double> scale = sums_.loss_scale();
  if (!scale.has_value()) return;
  const std::optional<std::string> warning =
      loss_scale_monitor_.OnStep(*scale, epoch_, epoch_steps_);
  if (warning.has_value() && strategy_.is_chief()) LOG(WARNING) << *warning;
}

absl::Status FitRun::AnnounceStep() {
  const bool is_last =
      plan_.steps_expected.has_value() && epoch_steps_ >= *plan_.steps_expected;
  if (is_last) return absl::OkStatus();
  return CallEach(options_.callbacks, &Callback::OnTrainBatchBegin, *model_,
                  epoch_steps_);
}

absl::StatusOr<Logs> FitRun::Validate(int epoch) {
  const bool is_due =
      validation_ != nullptr && options_.validation_freq.IsDue(epoch);
  if (!is_due) return Logs{};
  is_validating_ = true;
  absl::StatusOr<Logs> logs = validation_->Run();
  is_validating_ = false;
  return logs;
}

}  // namespace muster
