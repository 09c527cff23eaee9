#include "ps/ps_program.h"

#include <optional>
#include <variant>

#include "common/core/base/random.h"
#include "common/core/system/log.h"
#include "common/net/cluster/cluster_config.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/program.h"
#include "common/net/process/program_info.h"
#include "common/net/process/task_network.h"
#include "common/net/process/task_options.h"
#include "common/net/rpc/identity.h"
#include "ps/serve_parameters.h"

namespace muster {
namespace {

ProgramInfo Program() {
  return {
      .name = "ps",
      .summary =
          "Stores a part of a model's variables and applies the updates that "
          "workers push. It exits when the job ends.",
      .usage = "TF_CONFIG=... ps [flags]",
      .examples =
          "  TF_CONFIG='{\"cluster\": {\"worker\": [\"h0:2222\"], \"ps\": "
          "[\"h1:2222\"]},\n"
          "              \"task\": {\"type\": \"ps\", \"index\": 0}}' ps\n",
      .topics = TaskFlags(FlagUsers::kServer),
      .flags_of_others = FlagsOfOtherTasks(FlagUsers::kServer),
      .settings = std::nullopt,
  };
}

absl::Status CheckIsServer(const TaskOptions& options) {
  if (options.config.source.empty()) {
    return absl::InvalidArgumentError(
        "TF_CONFIG is not set. A parameter server must be a task of a cluster: "
        "export TF_CONFIG, pass --tf_config, or start it with srun");
  }
  if (options.config.task.type != TaskType::kPs) {
    return absl::InvalidArgumentError(
        "this executable runs tasks of type ps, but " + options.config.source +
        " declares this task as " + options.config.task.ToString());
  }
  return CheckParameterServerCluster(options.config);
}

}  // namespace

int ParameterServerMain(int argc, char** argv) {
  const ProgramInfo program = Program();
  const auto start = StartProgram(program, argc, argv, CheckIsServer);
  if (const auto* code = std::get_if<ExitCode>(&start)) {
    return static_cast<int>(*code);
  }
  const auto& options = std::get<TaskOptions>(start);
  const TaskId task = options.config.task;
  SetLogPrefix(task.ToString());
  const auto network = MakeTaskNetwork(options);
  if (!network.ok()) return FinishProgram(program, network.status());
  return FinishProgram(program,
                       ServeParameters(options,
                                       {.task_type = "ps",
                                        .task_index = task.index,
                                        .incarnation = RandomIdentity()},
                                       *network));
}

}  // namespace muster
