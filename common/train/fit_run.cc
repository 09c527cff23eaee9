#include "common/train/fit_run.h"

#include <cstdint>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/dataset/dataset.h"
#include "common/graph/graph.h"
#include "common/nn/metric.h"
#include "common/strategy/strategy.h"
#include "common/tensor/tensor.h"
#include "common/train/call_each.h"
#include "common/train/callback.h"
#include "common/train/evaluate_run.h"
#include "common/train/history.h"
#include "common/train/metric_sums.h"
#include "common/train/model.h"
#include "common/train/progress_bar.h"
#include "common/train/step_graphs.h"

namespace muster {
namespace {

std::vector<Metric> AllMetrics(const StepParts& parts) {
  std::vector<Metric> metrics = parts.metrics;
  metrics.insert(metrics.end(), parts.weighted_metrics.begin(),
                 parts.weighted_metrics.end());
  return metrics;
}

absl::StatusOr<int64_t> CountElements(const Dataset& data) {
  ASSIGN_OR_RETURN(const std::unique_ptr<DatasetIterator> iterator,
                   data.MakeIterator());
  Element element;
  for (int64_t count = 0;; ++count) {
    ASSIGN_OR_RETURN(const bool has_element, iterator->Next(&element));
    if (!has_element) return count;
  }
}

absl::Status CheckOptions(const FitOptions& options) {
  const auto refuse = [](absl::string_view what, int64_t least, int64_t came) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Fit: ", what, " must be at least ", least, ", got ", came));
  };
  if (options.epochs < 1) return refuse("epochs", 1, options.epochs);
  if (options.initial_epoch < 0) {
    return refuse("initial_epoch", 0, options.initial_epoch);
  }
  if (options.validation_freq < 1) {
    return refuse("validation_freq", 1, options.validation_freq);
  }
  if (options.steps_per_epoch.has_value() && *options.steps_per_epoch < 1) {
    return refuse("steps_per_epoch", 1, *options.steps_per_epoch);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EpochPlan> PlanEpochs(const Dataset& data,
                                     std::optional<int64_t> steps,
                                     bool draws_from_copies) {
  RETURN_IF_ERROR(data.status());
  const int64_t cardinality = data.Cardinality();
  EpochPlan plan{.data = data, .steps_max = steps, .steps_expected = steps};

  if (draws_from_copies) {
    // Each process goes through its own copy; an epoch is a number of steps of
    // all of them together.
    if (!steps.has_value() && cardinality == Dataset::kInfinite) {
      return absl::InvalidArgumentError(
          "steps_per_epoch is needed: workers draw from data that never ends");
    }
    if (!steps.has_value()) {
      // A file does not say how long it is.
      int64_t length = cardinality;
      if (length < 0) {
        ASSIGN_OR_RETURN(length, CountElements(data));
      }
      plan.steps_max = plan.steps_expected = length;
    }
    if (cardinality != Dataset::kInfinite) plan.data = data.Repeat();
    return plan;
  }
  if (!steps.has_value()) {
    if (cardinality == Dataset::kInfinite) {
      return absl::InvalidArgumentError(
          "steps_per_epoch is needed: the data never ends");
    }
    if (cardinality >= 0) plan.steps_expected = cardinality;
    return plan;
  }
  // Data of known length starts over with each epoch; other data goes on.
  if (cardinality >= 0) {
    plan.data = data.Take(*steps);
    plan.steps_max = std::nullopt;
  }
  return plan;
}

FitRun::FitRun(Model* model, const Dataset& data, const FitOptions& options)
    : model_(model),
      data_(data),
      options_(options),
      verbosity_(ResolveVerbosity(options.verbose)),
      sums_(AllMetrics(model->Parts())) {}

absl::StatusOr<History> FitRun::Run() {
  RETURN_IF_ERROR(Start());
  RETURN_IF_ERROR(
      CallEach(options_.callbacks, &Callback::OnTrainBegin, *model_));
  bool goes_on = true;
  for (int epoch = options_.initial_epoch; epoch < options_.epochs && goes_on;
       ++epoch) {
    ASSIGN_OR_RETURN(goes_on, RunEpoch(epoch));
  }
  RETURN_IF_ERROR(
      CallEach(options_.callbacks, &Callback::OnTrainEnd, *model_, logs_));
  return std::move(history_);
}

absl::Status FitRun::Start() {
  RETURN_IF_ERROR(CheckOptions(options_));
  Strategy& strategy = *model_->strategy();
  ASSIGN_OR_RETURN(plan_, PlanEpochs(data_, options_.steps_per_epoch,
                                     strategy.draws_from_copies()));
  RETURN_IF_ERROR(plan_.data.status());
  ASSIGN_OR_RETURN(const Graph step,
                   TraceTrainStep(model_->Parts(), plan_.data.element_types()));
  ASSIGN_OR_RETURN(loop_,
                   strategy.CreateLoop(step, plan_.data, LoopKind::kTrain));
  if (options_.validation_data.has_value()) {
    ASSIGN_OR_RETURN(validation_,
                     EvaluateRun::Create(model_, *options_.validation_data,
                                         {.steps = options_.validation_steps,
                                          .verbose = Verbosity::kSilent,
                                          .callbacks = options_.callbacks,
                                          .clock = options_.clock}));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> FitRun::RunEpoch(int epoch) {
  const bool says_epoch =
      verbosity_ != Verbosity::kSilent && options_.epochs > 1;
  if (says_epoch) {
    std::ostream& output =
        options_.output == nullptr ? std::cout : *options_.output;
    output << "Epoch " << epoch + 1 << "/" << options_.epochs << std::endl;
  }
  RETURN_IF_ERROR(
      CallEach(options_.callbacks, &Callback::OnEpochBegin, *model_, epoch));
  ProgressBar bar({.target = plan_.steps_expected,
                   .verbosity = verbosity_,
                   .clock = options_.clock,
                   .output = options_.output});
  RETURN_IF_ERROR(TrainSteps(&bar));
  if (epoch_steps_ == 0 && epoch == options_.initial_epoch) {
    return absl::InvalidArgumentError(
        "the training data has no batches: there is nothing to train on");
  }
  const bool ran_out = !model_->stop_training_ && RanOut(epoch);
  if (epoch_steps_ == 0) return false;
  // From the next epoch on the length is known.
  if (!plan_.steps_expected.has_value()) plan_.steps_expected = epoch_steps_;

  logs_ = sums_.Values();
  ProgressValues shown(logs_.begin(), logs_.end());
  ASSIGN_OR_RETURN(const Logs validation, Validate(epoch));
  for (const auto& [name, value] : validation) {
    logs_[absl::StrCat("val_", name)] = value;
    shown.emplace_back(absl::StrCat("val_", name), value);
  }
  bar.Finish(epoch_steps_, shown);
  for (Callback* callback : options_.callbacks) {
    RETURN_IF_ERROR(callback->AddEpochLogs(*model_, &logs_));
  }

  history_.epoch.push_back(epoch);
  for (const auto& [name, value] : logs_) {
    history_.history[name].push_back(value);
  }
  RETURN_IF_ERROR(CallEach(options_.callbacks, &Callback::OnEpochEnd, *model_,
                           epoch, logs_));
  ASSIGN_OR_RETURN(model_->stop_training_,
                   loop_->AgreeToStop(model_->stop_training_));
  return !ran_out && !model_->stop_training_;
}

absl::Status FitRun::TrainSteps(ProgressBar* bar) {
  sums_.Reset();
  epoch_steps_ = 0;
  const absl::Time start = options_.clock->Now();
  last_step_end_ = start;
  RETURN_IF_ERROR(AnnounceStep());
  const int64_t steps_max =
      plan_.steps_max.value_or(std::numeric_limits<int64_t>::max());
  const absl::StatusOr<StepLoop::Outcome> outcome = loop_->Run(
      steps_max,
      [&](absl::Span<const Tensor> results) { return OnStep(results, bar); });
  history_.train_seconds +=
      absl::ToDoubleSeconds(options_.clock->Now() - start);
  history_.example_count += sums_.example_count();
  if (outcome.ok()) {
    if (outcome->was_stopped) model_->StopTraining();
    return absl::OkStatus();
  }
  // A callback that stops training cancels the loop, which is no error.
  const bool was_stopped =
      model_->stop_training_ && absl::IsCancelled(outcome.status());
  return was_stopped ? absl::OkStatus() : outcome.status();
}

bool FitRun::RanOut(int epoch) const {
  const bool ran_out =
      plan_.steps_expected.has_value() && epoch_steps_ < *plan_.steps_expected;
  if (!ran_out) return false;
  LOG(WARNING) << "Your input ran out of data; interrupting training. Make "
                  "sure that your dataset can generate at least "
                  "steps_per_epoch * epochs batches: expected "
               << *plan_.steps_expected << " in epoch " << epoch + 1 << ", got "
               << epoch_steps_ << ". You may need Repeat() when building it.";
  return true;
}

absl::Status FitRun::OnStep(absl::Span<const Tensor> results,
                            ProgressBar* bar) {
  const absl::Time now = options_.clock->Now();
  // The first step of all also compiles.
  if (history_.step_count > 0) {
    history_.step_durations.Add(now - last_step_end_);
  }
  last_step_end_ = now;
  ++history_.step_count;
  ++epoch_steps_;
  RETURN_IF_ERROR(sums_.Add(results));

  const bool is_due = bar->IsDue();
  Logs logs;
  if (is_due || !options_.callbacks.empty()) logs = sums_.Values();
  bar->Update(epoch_steps_, is_due ? ProgressValues(logs.begin(), logs.end())
                                   : ProgressValues{});
  RETURN_IF_ERROR(CallEach(options_.callbacks, &Callback::OnTrainBatchEnd,
                           *model_, epoch_steps_ - 1, logs));
  if (model_->stop_training_) {
    return absl::CancelledError("training was stopped");
  }
  return AnnounceStep();
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
      validation_ != nullptr && (epoch + 1) % options_.validation_freq == 0;
  if (!is_due) return Logs{};
  return validation_->Run();
}

}  // namespace muster
