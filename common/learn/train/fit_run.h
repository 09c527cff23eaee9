#ifndef COMMON_LEARN_TRAIN_FIT_RUN_H_
#define COMMON_LEARN_TRAIN_FIT_RUN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/step_loop.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/metric_direction.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/checkpoints/training_progress.h"
#include "common/learn/train/checkpoints/training_state.h"
#include "common/learn/train/compiled_model.h"
#include "common/learn/train/epoch_plan.h"
#include "common/learn/train/evaluate_run.h"
#include "common/learn/train/loss_scale_monitor.h"
#include "common/learn/train/metric_sums.h"
#include "common/learn/train/model.h"
#include "common/learn/train/training_control.h"
#include "common/learn/train/training_monitor.h"
#include "common/learn/train/training_requests.h"

namespace muster {

// One call of Model::Fit(). Used once.
class FitRun final : public TrainingProgress {
 public:
  // All are borrowed. The validation data must be batched. `compiled` is the
  // compiled model of `model`, which is passed to callbacks. Until it is
  // destroyed, this object is the `progress` of `control`.
  FitRun(Model* model, const CompiledModel& compiled, TrainingControl* control,
         const Dataset& data, const FitOptions& options);
  ~FitRun() override;

  absl::StatusOr<History> Run();

  TrainingState State() const override;
  absl::Status ResumeFrom(const TrainingState& state) override;
  bool is_continued() const override { return is_continued_; }
  bool is_interrupted() const override { return control_->is_interrupted; }
  std::optional<MetricDirection> DirectionOf(
      absl::string_view name) const override;

 private:
  absl::Status Start();
  // Trains until the end of the last epoch.
  absl::Status Train();
  // Sets the state from which training resumes, if this process continues the
  // training of an earlier one.
  //   errors  as GroupMembership
  absl::Status TakeContinuedProgress();
  // Tells callbacks if this process has become the chief or is it no more.
  absl::Status NoteChief();
  // The verbosity of this process at present.
  Verbosity CurrentVerbosity() const;
  // Takes processes into the group that are ready to join. Collective.
  absl::Status TakeInJoiners();
  // Resumes from the state of ResumeFrom(), after the OnTrainBegin() of the
  // callbacks.
  absl::Status Resume();
  // Lets requests pause training and validation steps. If `is_watched`,
  // preemptions do, too.
  void WatchRequests(bool is_watched);
  // Serves a request between two steps.
  absl::Status ServeRequest();
  absl::Status RestoreCallbacks() const;
  // Warns that a callback had already ended the training that is being resumed.
  void WarnStopped() const;
  // Calls the callbacks and FitOptions::on_preemption before the process ends.
  absl::Status SaveBeforeEnd();
  // Lets callbacks save before a stop by an operator.
  void SaveBeforeStop();
  // Called after `failure`. If the variables were rolled back, resumes from the
  // same state. Otherwise returns `failure`.
  absl::Status RollBackAfter(const absl::Status& failure);
  // Returns true if training continues.
  absl::StatusOr<bool> RunEpoch(int epoch);
  // Calls the callbacks with the logs, and adds the logs to the history.
  absl::Status EndEpoch(int epoch);
  // Begins at the first step of the epoch, or at the step from which training
  // resumes.
  absl::Status BeginSteps();
  // Trains until the epoch ends or a callback stops training.
  absl::Status TrainSteps(ProgressBar* bar);
  // Runs the steps of TrainSteps(), and serves requests between them.
  absl::StatusOr<StepLoop::Outcome> RunLoop(ProgressBar* bar);
  // Warns, once, if the epoch had fewer steps than expected.
  void WarnOfShortEpoch();
  absl::Status OnStep(absl::Span<const Tensor> results, ProgressBar* bar);
  // True if a step may begin while the results of `unfinished_count` steps are
  // not available yet.
  bool MayOverlap(int64_t unfinished_count) const;
  // Ends a group of steps: updates progress and calls callbacks.
  absl::Status EndGroup(ProgressBar* bar);
  // Records the first value that is not finite. Returns NonFiniteError() if it
  // is a loss and fail_on_non_finite is set; otherwise logs a warning for the
  // first.
  absl::Status CheckFinite(const std::string& name, double value);
  bool IsLoss(absl::string_view name) const;
  // Warns if the scale of the loss does not settle.
  void CheckLossScale();
  // Calls OnTrainBatchBegin() of the callbacks, unless the epoch has no steps
  // left.
  absl::Status AnnounceStep();
  absl::StatusOr<Logs> Validate(int epoch);

  Model* const model_;
  const CompiledModel& compiled_;
  TrainingControl* const control_;
  Strategy& strategy_;
  const Dataset& data_;
  const FitOptions& options_;
  const int steps_per_execution_;
  EpochPlan plan_;
  MetricSums sums_;
  std::unique_ptr<StepLoop> loop_;
  std::unique_ptr<EvaluateRun> validation_;  // Null without validation data.
  History history_;
  Logs logs_;                // Values of the last epoch.
  int64_t epoch_steps_ = 0;  // Finished steps of this epoch.
  bool has_warned_of_short_epoch_ = false;
  int64_t group_steps_ = 0;  // Finished steps since the batch hooks were last
                             // called.
  int epoch_ = 0;
  bool epoch_has_ended_ = false;
  bool is_continued_ = false;
  bool was_chief_ = false;  // As callbacks know.
  // True while the epoch is validated, after its last step.
  bool is_validating_ = false;
  bool callbacks_watch_steps_ = false;
  bool has_diverged_ = false;  // fail_on_non_finite has ended training.
  StepPosition last_step_;     // The position of the loop after the last step.
  absl::Time epoch_start_;
  // The state from which training resumes. Unset after the epoch in which it
  // resumes has begun.
  std::optional<TrainingState> resumed_state_;
  // The state at the beginning of this call, after OnTrainBegin() of the
  // callbacks.
  TrainingState beginning_;
  absl::Time last_step_end_;
  int64_t trace_step_start_ns_ = 0;  // 0 if no trace is recorded.
  TrainingRequests requests_;
  TrainingMonitor monitor_;
  LossScaleMonitor loss_scale_monitor_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_FIT_RUN_H_
