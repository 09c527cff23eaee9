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
  // All are borrowed; the validation data is batched. `compiled` is the
  // compiled model of `model`, which callbacks get. Is the progress of
  // `control` as long as it lives.
  FitRun(Model* model, const CompiledModel& compiled, TrainingControl* control,
         const Dataset& data, const FitOptions& options);
  ~FitRun() override;

  absl::StatusOr<History> Run();

  TrainingState State() const override;
  absl::Status GoOnFrom(const TrainingState& state) override;
  bool is_interrupted() const override { return control_->is_interrupted; }
  std::optional<MetricDirection> DirectionOf(
      absl::string_view name) const override;

 private:
  absl::Status Start();
  // Trains to the end.
  absl::Status Train();
  // Where GoOnFrom() says, once callbacks know that training begins.
  absl::Status GoOn();
  // Lets requests pause the steps, those of validations too; with `is_watched`
  // also preemptions.
  void WatchRequests(bool is_watched);
  // Between two steps.
  absl::Status ServeRequest();
  absl::Status RestoreCallbacks() const;
  // Warns that a callback had ended what is continued.
  void SayStopped() const;
  // Lets callbacks and FitOptions::on_preemption save.
  absl::Status SaveBeforeEnd();
  // Lets callbacks save before an operator's stop.
  void SaveBeforeStop();
  // After `failure`: back to where the variables are, if they were taken back;
  // `failure` otherwise.
  absl::Status GoBackAfter(const absl::Status& failure);
  // Returns whether training continues.
  absl::StatusOr<bool> RunEpoch(int epoch);
  // At the epoch's first step, or where training continues.
  absl::Status BeginSteps();
  // Until the epoch ends or a callback stops training.
  absl::Status TrainSteps(ProgressBar* bar);
  // The steps of TrainSteps(). Serves requests between two of them.
  absl::StatusOr<StepLoop::Outcome> RunLoop(ProgressBar* bar);
  // Once, if the epoch had fewer steps than it should have.
  void WarnOfShortEpoch();
  absl::Status OnStep(absl::Span<const Tensor> results, ProgressBar* bar);
  // True if a step may begin behind so many whose results are not there yet.
  bool MayOverlap(int64_t unfinished_count) const;
  // Ends a group of steps: progress and callbacks.
  absl::Status EndGroup(ProgressBar* bar);
  // Keeps the first value that is not finite. Returns NonFiniteError() if it is
  // a loss, and warns of it otherwise.
  absl::Status CheckFinite(const std::string& name, double value);
  bool IsLoss(absl::string_view name) const;
  // Warns of a scale of the loss that does not settle.
  void CheckLossScale();
  // Tells the callbacks that a step begins, unless the epoch has none left.
  absl::Status AnnounceStep();
  absl::StatusOr<Logs> Validate(int epoch);

  Model* const model_;
  const CompiledModel& compiled_;
  TrainingControl* const control_;
  Strategy& strategy_;
  const Dataset& data_;
  const FitOptions& options_;
  const Verbosity verbosity_;
  const int steps_per_execution_;
  EpochPlan plan_;
  MetricSums sums_;
  std::unique_ptr<StepLoop> loop_;
  std::unique_ptr<EvaluateRun> validation_;  // Null without validation data.
  History history_;
  Logs logs_;                // Of the last epoch.
  int64_t epoch_steps_ = 0;  // Done in this epoch.
  bool has_warned_of_short_epoch_ = false;
  int64_t group_steps_ = 0;  // Of those, since the batch hooks were called.
  int epoch_ = 0;
  bool epoch_has_ended_ = false;
  // The steps of the epoch are done, and its validation is not.
  bool is_validating_ = false;
  bool callbacks_watch_steps_ = false;
  bool has_diverged_ = false;  // fail_on_non_finite has ended training.
  StepPosition last_step_;     // Where the last step has left the loop.
  absl::Time epoch_start_;
  // Set until the epoch in which training continues has begun.
  std::optional<TrainingState> go_on_from_;
  // Where this call has begun, after OnTrainBegin() of the callbacks.
  TrainingState beginning_;
  absl::Time last_step_end_;
  int64_t trace_step_start_ns_ = 0;  // 0: no trace is recorded.
  TrainingRequests requests_;
  TrainingMonitor monitor_;
  LossScaleMonitor loss_scale_monitor_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_FIT_RUN_H_
