#include "coordinator/run_task.h"

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/learn/strategy/strategies/multi_worker_mirrored_strategy.h"
#include "common/learn/train/base/random_seed.h"
#include "common/net/cluster/cluster_config.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/exit_code.h"
#include "common/net/process/program.h"
#include "common/net/process/run_lease.h"
#include "common/net/process/task.h"
#include "common/net/process/task_network.h"
#include "common/net/process/train_task.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/network.h"
#include "coordinator/parameter_server_strategy.h"
#include "coordinator/standby.h"
#include "ps/serve_parameters.h"
#include "worker/serve_worker.h"

namespace muster {
namespace {

absl::Status CheckCluster(const TaskOptions& options) {
  const ClusterConfig& config = options.config;
  if (options.stands_by) RETURN_IF_ERROR(CheckStandby(options));
  if (config.IsAlone()) return absl::OkStatus();
  return config.HasParameterServers() ? CheckParameterServerCluster(config)
                                      : CheckMultiWorkerCluster(config);
}

// True if this task serves a coordinator of parameter-server training and does
// not train by itself.
bool Serves(const ClusterConfig& config) {
  return !config.IsAlone() && config.HasParameterServers() &&
         config.task.type != TaskType::kChief;
}

// Create() of a strategy sends Task::failure() to the other tasks instead of
// training.
void TellOthers(Task& task) {
  if (task.options().config.HasParameterServers()) {
    ParameterServerStrategy::Create(task).status().IgnoreError();
  } else {
    MultiWorkerMirroredStrategy::Create(task).status().IgnoreError();
  }
}

}  // namespace

int RunTask(int argc, char** argv, TrainFunction train,
            std::vector<Setting> settings) {
  ProgramInfo program;
  const absl::string_view path = argc > 0 ? argv[0] : "program";
  const size_t slash = path.rfind('/');
  program.name = std::string(
      slash == absl::string_view::npos ? path : path.substr(slash + 1));
  program.summary =
      "A training program. TF_CONFIG decides which role it has; without "
      "TF_CONFIG it trains in this process alone.";
  program.usage = absl::StrCat(program.name, " [flags] [--set name=value ...]");
  program.topics = TaskFlags(FlagUsers::kAny);
  program.settings = std::move(settings);
  const auto check = [](const TaskOptions& options) {
    return CheckRunDirIsFree(options);
  };
  const auto train_alone = [train](Task& task) -> absl::Status {
    ASSIGN_OR_RETURN(const std::unique_ptr<RunLease> lease,
                     TakeRunLease(&task, task.options().run_dir));
    return StatusOfRun(lease.get(), train(task));
  };
  return RunTask(program, argc, argv, check, train_alone);
}

int RunTask(const ProgramInfo& program, int argc, char** argv,
            absl::FunctionRef<absl::Status(const TaskOptions&)> check,
            TrainFunction train) {
  const auto start =
      StartProgram(program, argc, argv, [&](const TaskOptions& options) {
        RETURN_IF_ERROR(CheckCluster(options));
        return check(options);
      });
  if (const auto* const code = std::get_if<ExitCode>(&start)) {
    return static_cast<int>(*code);
  }
  TaskOptions options = std::get<TaskOptions>(start);
  if (options.seed.has_value()) SetRandomSeed(*options.seed);
  const TaskId task = options.config.task;
  const TaskIdentity identity = {
      .task_type = std::string(TaskTypeName(task.type)),
      .task_index = task.index,
      .incarnation = RandomIdentity()};
  if (!options.config.IsAlone()) SetLogPrefix(task.ToString());
  absl::Status end;
  bool leads = true;
  if (options.stands_by) {
    // Before anything is opened that the leading coordinator uses.
    const absl::StatusOr<bool> has_come = StandBy(&options, &end);
    if (!has_come.ok()) return FinishProgram(program, has_come.status());
    leads = *has_come;
  }
  const absl::StatusOr<Network*> network = MakeTaskNetwork(options);
  if (!network.ok()) return FinishProgram(program, network.status());
  if (!leads) {
    TellTasksOfEnd(options, identity, *network);
    return FinishProgram(program, end);
  }
  if (!Serves(options.config)) {
    return FinishProgram(
        program, TrainTask(options, identity, *network, train, TellOthers));
  }
  const absl::Status status = task.type == TaskType::kPs
                                  ? ServeParameters(options, identity, *network)
                                  : ServeWorker(options, identity, *network);
  return FinishProgram(program, status);
}

}  // namespace muster
