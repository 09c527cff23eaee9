#include "coordinator/coordinator_program.h"

#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"
#include "common/learn/train/job/job_evaluation.h"
#include "common/learn/train/job/job_predict.h"
#include "common/learn/train/job/job_reference.h"
#include "common/learn/train/job/job_task.h"
#include "common/learn/train/job/resolved_job.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/program_info.h"
#include "common/net/process/run_lease.h"
#include "common/net/process/task.h"
#include "common/net/process/task_options.h"
#include "coordinator/job_strategy.h"
#include "coordinator/run_task.h"

ABSL_FLAG(
    std::string, predict, "",
    "Predicts in place of training, and writes this CSV file: a row for "
    "each example of the job's predict_data, or of --predict_data. A name "
    "that ends in .npy gets the array of the model's output instead.");
ABSL_FLAG(std::string, predict_data, "",
          "A file or folder to predict for, in the format of the job's "
          "predict_data, or else of its test, validation or training data. "
          "Labels are not needed.");
ABSL_FLAG(bool, predict_classes, false,
          "Adds a column with the class of the greatest value.");
ABSL_FLAG(bool, evaluate, false,
          "Evaluates in place of training: prints the loss and the metrics of "
          "the job's test data, or else of its validation data.");
ABSL_FLAG(std::string, weights, "",
          "The prefix of the checkpoint to predict or evaluate with. By "
          "default final_weights in --run_dir.");

namespace muster {
namespace {

ProgramInfo Program() {
  std::vector<FlagTopic> topics = TaskFlags(FlagUsers::kCoordinator);
  topics.insert(topics.begin() + 1,
                {.title = "Prediction and evaluation",
                 .flags = {"predict", "predict_data", "predict_classes",
                           "evaluate", "weights"}});
  return {
      .name = "coordinator",
      .summary =
          "Trains the model that a job file describes: creates its variables, "
          "hands steps to the workers, evaluates, and writes summary.json. On "
          "the cluster that TF_CONFIG names, or in this process alone. As an "
          "evaluator: scores every checkpoint that the training writes. With "
          "--predict or --evaluate: predicts or evaluates with the weights of "
          "a "
          "training that is over.",
      .usage = "coordinator --job=FILE [--set name=value ...] [flags]",
      .examples =
          "  coordinator --job=examples/digits/digits.job\n"
          "  TF_CONFIG='{\"cluster\": {\"worker\": [\"h0:2222\"], \"ps\": "
          "[\"h1:2222\"]},\n"
          "              \"task\": {\"type\": \"chief\", \"index\": 0}}' "
          "coordinator --job=mnist.job\n"
          "  coordinator --job=mnist.job --run_dir=runs/1 "
          "--predict_data=new.csv --predict=out.csv\n",
      .topics = std::move(topics),
      .flags_of_others = FlagsOfOtherTasks(FlagUsers::kCoordinator),
      .explain = ExplainJobField,
      .settings = std::nullopt,
  };
}

bool IsPrediction() { return !absl::GetFlag(FLAGS_predict).empty(); }
bool IsEvaluation() { return absl::GetFlag(FLAGS_evaluate); }

// Rejects flags for predictions and evaluations if they do not apply.
absl::Status CheckUseOfWeights(const TaskOptions& options) {
  if (IsPrediction() && IsEvaluation()) {
    return absl::InvalidArgumentError(
        "--predict and --evaluate exclude each other");
  }
  const bool has_prediction_flag = !absl::GetFlag(FLAGS_predict_data).empty() ||
                                   absl::GetFlag(FLAGS_predict_classes);
  if (!IsPrediction() && has_prediction_flag) {
    return absl::InvalidArgumentError(
        "--predict_data and --predict_classes are for predictions: "
        "--predict=OUT.csv is missing");
  }
  if (!IsPrediction() && !IsEvaluation()) {
    if (absl::GetFlag(FLAGS_weights).empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "--weights is for --predict=OUT.csv and --evaluate; expected one of "
        "them");
  }
  const absl::string_view flag = IsPrediction() ? "--predict" : "--evaluate";
  if (!options.config.IsAlone()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " runs in one process, and ", options.config.source,
                     " names a cluster: unset it"));
  }
  if (absl::GetFlag(FLAGS_weights).empty() && options.run_dir.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        flag,
        " needs trained weights: --run_dir=DIR of the training, whose "
        "final_weights are taken, or --weights=PREFIX of a checkpoint"));
  }
  return absl::OkStatus();
}

std::string Weights(const TaskOptions& options) {
  const std::string weights = absl::GetFlag(FLAGS_weights);
  return weights.empty() ? absl::StrCat(options.run_dir, "/final_weights")
                         : weights;
}

absl::Status Predict(const TaskOptions& options, ResolvedJob job) {
  return PredictJob(std::move(job),
                    {.output_file = absl::GetFlag(FLAGS_predict),
                     .weights = Weights(options),
                     .data_file = absl::GetFlag(FLAGS_predict_data),
                     .with_classes = absl::GetFlag(FLAGS_predict_classes),
                     .thread_count = options.thread_count});
}

absl::Status Evaluate(const TaskOptions& options, ResolvedJob job) {
  return EvaluateWeights(std::move(job),
                         {.weights = Weights(options),
                          .thread_count = options.thread_count},
                         std::cout)
      .status();
}

absl::Status CheckTask(const TaskOptions& options) {
  const TaskType type = options.config.task.type;
  if (type != TaskType::kChief && !options.config.IsAlone()) {
    return absl::InvalidArgumentError(
        "this is the coordinator's executable, and " + options.config.source +
        " makes this task " + options.config.task.ToString() +
        "; start worker or ps in its place");
  }
  return absl::OkStatus();
}

}  // namespace

int CoordinatorMain(int argc, char** argv) {
  std::optional<ResolvedJob> job;
  const auto check = [&](const TaskOptions& options) -> absl::Status {
    RETURN_IF_ERROR(CheckTask(options));
    // --check_config without a job checks the cluster only.
    if (CheckConfigWanted() && options.job_file.empty()) {
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(CheckUseOfWeights(options));
    const bool trains = !IsPrediction() && !IsEvaluation();
    if (trains) RETURN_IF_ERROR(CheckRunDirIsFree(options));
    ASSIGN_OR_RETURN(job, ResolveJob(options));
    return absl::OkStatus();
  };
  const auto run = [&](Task& task) {
    if (IsPrediction()) return Predict(task.options(), *std::move(job));
    if (IsEvaluation()) return Evaluate(task.options(), *std::move(job));
    return TrainJob(task, *std::move(job), JobStrategyFactory(&task));
  };
  return RunTask(Program(), argc, argv, check, run);
}

}  // namespace muster
