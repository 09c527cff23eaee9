// A worker. Where the cluster has parameter servers it runs the steps that the
// coordinator sends it; in a cluster of workers only it trains, in step with
// the others.

#include <optional>
#include <variant>

#include "absl/status/status.h"
#include "common/core/base/log.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/learn/train/job/job.h"
#include "common/learn/train/job/job_task.h"
#include "common/learn/train/job/synchronous_job.h"
#include "common/net/cluster/cluster_config.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/exit_code.h"
#include "common/net/process/program.h"
#include "common/net/process/program_info.h"
#include "common/net/process/task.h"
#include "common/net/process/task_options.h"
#include "common/net/process/train_task.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/network.h"
#include "worker/serve_worker.h"

namespace {

muster::ProgramInfo Program() {
  return {
      .name = "worker",
      .summary =
          "In a cluster with parameter servers: runs steps of training for the "
          "coordinator, which sends it graphs and data pipelines, so any job "
          "can use it as it is. In a cluster of workers only: trains the "
          "model that --job describes, in step with the other workers, each of "
          "which is given the same job; the chief, or else worker 0, writes "
          "the results. As an evaluator: scores every checkpoint of the job. "
          "It exits by itself when the job is over.",
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
      .topics = muster::TaskFlags(muster::FlagUsers::kWorker),
      .flags_of_others = muster::FlagsOfOtherTasks(muster::FlagUsers::kWorker),
      .settings = std::nullopt,
  };
}

bool Serves(const muster::ClusterConfig& config) {
  return config.HasParameterServers() &&
         config.task.type != muster::TaskType::kEvaluator;
}

absl::Status CheckTask(const muster::TaskOptions& options) {
  using muster::TaskType;
  const muster::ClusterConfig& config = options.config;
  const TaskType type = config.task.type;
  const bool has_place = type == TaskType::kWorker ||
                         type == TaskType::kEvaluator ||
                         (type == TaskType::kChief && !Serves(config));
  if (!has_place) {
    return absl::InvalidArgumentError(
        "this is the worker's executable, and TF_CONFIG makes this task " +
        config.task.ToString());
  }
  if (Serves(config)) return muster::CheckParameterServerCluster(config);
  if (config.IsAlone()) return absl::OkStatus();
  return muster::CheckMultiWorkerCluster(config);
}

}  // namespace

int main(int argc, char** argv) {
  const muster::ProgramInfo program = Program();
  muster::ResolvedJob job;
  const auto check = [&](const muster::TaskOptions& options) -> absl::Status {
    RETURN_IF_ERROR(CheckTask(options));
    if (Serves(options.config)) return absl::OkStatus();
    // What is asked is the cluster.
    if (muster::CheckConfigWanted() && options.job_file.empty()) {
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(job, muster::ResolveJob(options));
    return absl::OkStatus();
  };
  const auto train = [&](muster::Task& task) {
    return muster::TrainJob(
        task, job, muster::SynchronousStrategyFactory(&task, job.agreed_text));
  };
  const auto start = muster::StartProgram(program, argc, argv, check);
  if (const auto* code = std::get_if<muster::ExitCode>(&start)) {
    return static_cast<int>(*code);
  }
  const auto& options = std::get<muster::TaskOptions>(start);
  const muster::TaskId task = options.config.task;
  const muster::TaskIdentity identity = {
      .task_type = std::string(muster::TaskTypeName(task.type)),
      .task_index = task.index,
      .incarnation = muster::RandomIdentity()};
  if (!options.config.IsAlone()) muster::SetLogPrefix(task.ToString());
  muster::Network* const network = muster::Network::Grpc();
  return muster::FinishProgram(
      program, Serves(options.config)
                   ? muster::ServeWorker(options, identity, network)
                   : muster::TrainTask(options, identity, network, train));
}
