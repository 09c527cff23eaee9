#include "coordinator/run_task.h"

#include <cstdlib>
#include <iostream>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/log.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_config.h"
#include "common/cluster/incarnation.h"
#include "common/cluster/task_id.h"
#include "common/process/exit_code.h"
#include "common/process/program.h"
#include "common/process/shutdown_signals.h"
#include "common/process/start_line.h"
#include "common/rpc/identity.h"
#include "common/rpc/network.h"
#include "ps/serve_parameters.h"
#include "worker/serve_worker.h"

namespace muster {
namespace {

absl::Status CheckCluster(const TaskOptions& options) {
  const ClusterConfig& config = options.config;
  if (config.IsAlone()) return absl::OkStatus();
  if (config.HasParameterServers()) return CheckParameterServerCluster(config);
  return absl::InvalidArgumentError(absl::StrCat(
      config.source, ": this cluster has workers and no ps. Training without ",
      "parameter servers is not built in yet; add a \"ps\" list"));
}

absl::Status Train(TaskOptions options, const TaskIdentity& identity,
                   TrainFunction train) {
  ShutdownSignals signals({.grace_period = options.grace_period});
  const uint64_t seed = options.seed.value_or(RandomIdentity());
  std::cerr << StartLine({.config = options.config,
                          .incarnation = Incarnation(identity.incarnation),
                          .seed = seed})
            << std::endl;
  Task task(std::move(options), identity, seed, Network::Grpc());
  signals.SetHandler([&](int signal) {
    // Nothing to take leave of.
    if (!task.Interrupt()) std::_Exit(128 + signal);
  });
  absl::Status status = train(task);
  signals.SetHandler(nullptr);
  if (!status.ok() && signals.signal() != 0) {
    status = WithExitCode(status, static_cast<ExitCode>(signals.exit_code()));
  }
  task.EndJob(status.ok() ? 0 : 1);
  return status;
}

}  // namespace

int RunTask(int argc, char** argv, TrainFunction train) {
  ProgramInfo program;
  const absl::string_view path = argc > 0 ? argv[0] : "program";
  const size_t slash = path.rfind('/');
  program.name = std::string(
      slash == absl::string_view::npos ? path : path.substr(slash + 1));
  program.summary = "A training program: it becomes what TF_CONFIG says.";
  program.usage = absl::StrCat(program.name, " [flags] [--set name=value ...]");
  program.flags = TaskFlagNames();
  return RunTask(
      program, argc, argv, [](const TaskOptions&) { return absl::OkStatus(); },
      train);
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
  const TaskOptions& options = std::get<TaskOptions>(start);
  const TaskId task = options.config.task;
  const TaskIdentity identity = {
      .task_type = std::string(TaskTypeName(task.type)),
      .task_index = task.index,
      .incarnation = RandomIdentity()};
  if (!options.config.IsAlone()) SetLogPrefix(task.ToString());
  absl::Status status;
  if (!options.config.IsAlone() && task.type == TaskType::kPs) {
    status = ServeParameters(options, identity, Network::Grpc());
  } else if (!options.config.IsAlone() && task.type == TaskType::kWorker) {
    status = ServeWorker(options, identity, Network::Grpc());
  } else {
    status = Train(options, identity, train);
  }
  return FinishProgram(program, status);
}

}  // namespace muster
