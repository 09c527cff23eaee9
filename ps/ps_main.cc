// The executable of parameter servers, which store variables and apply updates
// to them.

#include <optional>
#include <variant>

#include "common/core/base/log.h"
#include "common/core/base/random.h"
#include "common/net/cluster/cluster_config.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/program.h"
#include "common/net/process/program_info.h"
#include "common/net/process/task_network.h"
#include "common/net/process/task_options.h"
#include "common/net/rpc/identity.h"
#include "ps/serve_parameters.h"

namespace {

muster::ProgramInfo Program() {
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
      .topics = muster::TaskFlags(muster::FlagUsers::kServer),
      .flags_of_others = muster::FlagsOfOtherTasks(muster::FlagUsers::kServer),
      .settings = std::nullopt,
  };
}

absl::Status CheckIsServer(const muster::TaskOptions& options) {
  using muster::TaskType;
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
  return muster::CheckParameterServerCluster(options.config);
}

}  // namespace

int main(int argc, char** argv) {
  const muster::ProgramInfo program = Program();
  const auto start = muster::StartProgram(program, argc, argv, CheckIsServer);
  if (const auto* code = std::get_if<muster::ExitCode>(&start)) {
    return static_cast<int>(*code);
  }
  const auto& options = std::get<muster::TaskOptions>(start);
  const muster::TaskId task = options.config.task;
  muster::SetLogPrefix(task.ToString());
  const auto network = muster::MakeTaskNetwork(options);
  if (!network.ok()) return muster::FinishProgram(program, network.status());
  return muster::FinishProgram(
      program,
      muster::ServeParameters(options,
                              {.task_type = "ps",
                               .task_index = task.index,
                               .incarnation = muster::RandomIdentity()},
                              *network));
}
