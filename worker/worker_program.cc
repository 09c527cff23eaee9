#include "worker/worker_program.h"

#include <optional>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/learn/strategy/strategies/multi_worker_mirrored_strategy.h"
#include "common/learn/train/job/job_strategy.h"
#include "common/learn/train/job/job_task.h"
#include "common/learn/train/job/resolved_job.h"
#include "common/net/cluster/cluster_config.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/exit_code.h"
#include "common/net/process/program.h"
#include "common/net/process/program_info.h"
#include "common/net/process/run_lease.h"
#include "common/net/process/task.h"
#include "common/net/process/task_network.h"
#include "common/net/process/task_options.h"
#include "common/net/process/train_task.h"
#include "common/net/rpc/identity.h"
#include "worker/serve_worker.h"

namespace muster {
namespace {

ProgramInfo Program() {
  return {
      .name = "worker",
      .summary =
          "In a cluster with parameter servers: runs training steps for the "
          "coordinator, which sends the graphs and input pipelines, so the "
          "same executable serves any job. In a cluster of workers only: "
          "trains the model that --job describes, in sync with the other "
          "workers, which all need the same job; the chief, or worker 0 if "
          "there is none, writes the results. As an evaluator: evaluates every "
          "checkpoint of the job. It exits when the job ends.",
      .usage =
          "TF_CONFIG=... worker [flags]\n"
          "       TF_CONFIG=... worker --job=FILE [--set name=value ...] "
          "[flags]",
      .examples =
          "  TF_CONFIG='{\"cluster\": {\"worker\": [\"h0:2222\"], \"ps\": "
          "[\"h1:2222\"]},\n"
          "              \"task\": {\"type\": \"worker\", \"index\": 0}}' "
          "worker\n"
          "  TF_CONFIG='{\"cluster\": {\"worker\": [\"h0:2222\", "
          "\"h1:2222\"]},\n"
          "              \"task\": {\"type\": \"worker\", \"index\": 0}}' "
          "worker --job=mnist.job\n",
      .topics = TaskFlags(FlagUsers::kWorker),
      .flags_of_others = FlagsOfOtherTasks(FlagUsers::kWorker),
      .settings = std::nullopt,
  };
}

bool Serves(const ClusterConfig& config) {
  return config.HasParameterServers() &&
         config.task.type != TaskType::kEvaluator;
}

absl::Status CheckTask(const TaskOptions& options) {
  const ClusterConfig& config = options.config;
  const TaskType type = config.task.type;
  const bool has_place = type == TaskType::kWorker ||
                         type == TaskType::kEvaluator ||
                         (type == TaskType::kChief && !Serves(config));
  if (!has_place) {
    return absl::InvalidArgumentError(
        "this executable runs workers and evaluators, but " + config.source +
        " declares this task as " + config.task.ToString());
  }
  if (Serves(config)) return CheckParameterServerCluster(config);
  if (config.IsAlone()) return absl::OkStatus();
  return CheckMultiWorkerCluster(config);
}

}  // namespace

int WorkerMain(int argc, char** argv) {
  const ProgramInfo program = Program();
  std::optional<ResolvedJob> job;
  const auto check = [&](const TaskOptions& options) -> absl::Status {
    RETURN_IF_ERROR(CheckTask(options));
    if (Serves(options.config)) return absl::OkStatus();
    // --check_config without a job checks the cluster only.
    if (CheckConfigWanted() && options.job_file.empty()) {
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(CheckRunDirIsFree(options));
    ASSIGN_OR_RETURN(job, ResolveJob(options));
    return absl::OkStatus();
  };
  const auto train = [&](Task& task) {
    return TrainJob(task, *std::move(job), SynchronousStrategyFactory(&task));
  };
  // MultiWorkerMirroredStrategy::Create() sends Task::failure() to the other
  // tasks instead of training.
  const auto notify_others = [](Task& task) {
    MultiWorkerMirroredStrategy::Create(task).status().IgnoreError();
  };
  const auto start = StartProgram(program, argc, argv, check);
  if (const auto* code = std::get_if<ExitCode>(&start)) {
    return static_cast<int>(*code);
  }
  const auto& options = std::get<TaskOptions>(start);
  const TaskId task = options.config.task;
  const TaskIdentity identity = {
      .task_type = std::string(TaskTypeName(task.type)),
      .task_index = task.index,
      .incarnation = RandomIdentity()};
  if (!options.config.IsAlone()) SetLogPrefix(task.ToString());
  const auto network = MakeTaskNetwork(options);
  if (!network.ok()) return FinishProgram(program, network.status());
  return FinishProgram(program, Serves(options.config)
                                    ? ServeWorker(options, identity, *network)
                                    : TrainTask(options, identity, *network,
                                                train, notify_others));
}

}  // namespace muster
