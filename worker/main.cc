// A worker: runs the steps that the coordinator of its cluster sends it.

#include <variant>

#include "common/base/log.h"
#include "common/base/random.h"
#include "common/cluster/cluster_config.h"
#include "common/cluster/task_id.h"
#include "common/process/program.h"
#include "common/process/task_options.h"
#include "common/rpc/identity.h"
#include "common/rpc/network.h"
#include "worker/serve_worker.h"

namespace {

muster::ProgramInfo Program() {
  return {
      .name = "worker",
      .summary =
          "Runs steps of training for the coordinator of its cluster. Graphs "
          "and data pipelines are sent to it, so any job can use it as it is. "
          "It exits by itself when the job is over.",
      .usage = "TF_CONFIG=... worker [flags]",
      .examples =
          "  TF_CONFIG='{\"cluster\": {\"worker\": [\"h0:2222\"], \"ps\": "
          "[\"h1:2222\"]},\n"
          "              \"task\": {\"type\": \"worker\", \"index\": 0}}' "
          "worker\n",
      .flags = muster::TaskFlagNames(),
  };
}

absl::Status CheckIsWorker(const muster::TaskOptions& options) {
  using muster::TaskType;
  if (options.config.task.type != TaskType::kWorker) {
    return absl::InvalidArgumentError(
        "this is the worker's executable, and TF_CONFIG makes this task " +
        options.config.task.ToString());
  }
  return muster::CheckParameterServerCluster(options.config);
}

}  // namespace

int main(int argc, char** argv) {
  const muster::ProgramInfo program = Program();
  const auto start = muster::StartProgram(program, argc, argv, CheckIsWorker);
  if (const auto* code = std::get_if<muster::ExitCode>(&start)) {
    return static_cast<int>(*code);
  }
  const auto& options = std::get<muster::TaskOptions>(start);
  const muster::TaskId task = options.config.task;
  muster::SetLogPrefix(task.ToString());
  return muster::FinishProgram(
      program, muster::ServeWorker(options,
                                   {.task_type = "worker",
                                    .task_index = task.index,
                                    .incarnation = muster::RandomIdentity()},
                                   muster::Network::Grpc()));
}
