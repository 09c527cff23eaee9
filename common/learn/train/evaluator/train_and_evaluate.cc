#include "common/learn/train/evaluator/train_and_evaluate.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/io/storage/disk.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/evaluator/training_end.h"
#include "common/net/cluster/cluster_config.h"
#include "common/net/cluster/task_id.h"

namespace muster {
namespace {

// A second model, for evaluating checkpoints while the first one trains.
struct Evaluation {
  std::unique_ptr<Strategy> strategy;
  std::unique_ptr<Model> model;
  std::shared_ptr<CheckpointEvaluator> evaluator;
};

absl::StatusOr<Evaluation> MakeEvaluation(const Task& task,
                                          const TrainSpec& train,
                                          const EvalSpec& eval) {
  Evaluation evaluation;
  ASSIGN_OR_RETURN(
      evaluation.strategy,
      DefaultStrategy::Create({.thread_count = task.options().thread_count}));
  ASSIGN_OR_RETURN(Model model, train.make_model(*evaluation.strategy));
  evaluation.model = std::make_unique<Model>(std::move(model));
  ASSIGN_OR_RETURN(
      evaluation.evaluator,
      CheckpointEvaluator::Create(evaluation.model.get(), eval.data,
                                  {.checkpoint_dir = train.checkpoint_dir,
                                   .log_dir = eval.log_dir,
                                   .steps = eval.steps,
                                   .exporters = eval.exporters,
                                   .timeout = eval.timeout}));
  return evaluation;
}

// Evaluates new checkpoints after each epoch.
class ScoreAfterEpochs final : public Callback {
 public:
  explicit ScoreAfterEpochs(CheckpointEvaluator* evaluator)
      : evaluator_(evaluator) {}

  absl::Status OnEpochEnd(Model&, int, Logs&) override {
    return evaluator_->ScoreNew().status();
  }
  bool watches_steps() const override { return false; }

 private:
  CheckpointEvaluator* const evaluator_;
};

absl::StatusOr<std::unique_ptr<Strategy>> MakeStrategy(Task& task,
                                                       const TrainSpec& train) {
  if (train.make_strategy != nullptr) return train.make_strategy(task);
  return DefaultStrategy::Create({.thread_count = task.options().thread_count});
}

}  // namespace

absl::Status TrainUntilTheEnd(const Strategy& strategy,
                              const std::string& checkpoint_dir,
                              const std::function<absl::Status()>& train) {
  Disk* const disk = Disk::Real();
  const bool writes = strategy.is_chief() && !checkpoint_dir.empty();
  if (writes) RETURN_IF_ERROR(RemoveTrainingEnd(disk, checkpoint_dir));
  RETURN_IF_ERROR(train());
  if (!writes) return absl::OkStatus();
  return WriteTrainingEnd(
      disk, checkpoint_dir,
      {.training_id = absl::StrFormat("%016x", RandomIdentity())});
}

absl::StatusOr<TrainAndEvaluateResult> TrainAndEvaluate(Task& task,
                                                        const TrainSpec& train,
                                                        const EvalSpec& eval) {
  const ClusterConfig& config = task.options().config;
  TrainAndEvaluateResult result;
  if (config.task.type == TaskType::kEvaluator) {
    ASSIGN_OR_RETURN(const Evaluation evaluation,
                     MakeEvaluation(task, train, eval));
    task.OnInterrupt(
        [evaluator = evaluation.evaluator] { evaluator->Interrupt(); });
    ASSIGN_OR_RETURN(result.evaluations, evaluation.evaluator->Run());
    return result;
  }

  ASSIGN_OR_RETURN(const std::unique_ptr<Strategy> strategy,
                   MakeStrategy(task, train));
  ASSIGN_OR_RETURN(Model model, train.make_model(*strategy));
  FitOptions fit = train.fit;
  Evaluation evaluation;
  std::optional<ScoreAfterEpochs> score;
  if (config.IsAlone()) {
    ASSIGN_OR_RETURN(evaluation, MakeEvaluation(task, train, eval));
    score.emplace(evaluation.evaluator.get());
    fit.callbacks.push_back(&*score);
  }
  RETURN_IF_ERROR(
      TrainUntilTheEnd(*strategy, train.checkpoint_dir, [&]() -> absl::Status {
        ASSIGN_OR_RETURN(result.history, model.Fit(train.data, fit));
        return absl::OkStatus();
      }));
  if (evaluation.evaluator != nullptr) {
    ASSIGN_OR_RETURN(result.evaluations, evaluation.evaluator->Run());
  }
  return result;
}

}  // namespace muster
