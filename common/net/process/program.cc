#include "common/net/process/program.h"

#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/core/base/quoted_text.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/device_set.h"
#include "common/core/system/log.h"
#include "common/core/system/log_format.h"
#include "common/core/tensor/check_numerics.h"
#include "common/net/process/command_line.h"
#include "common/net/process/help.h"
#include "common/net/process/resource_failure.h"
#include "common/net/process/shutdown_signals.h"
#include "common/net/process/task_log.h"
#include "common/net/process/task_network.h"
#include "common/net/process/version.h"
#include "common/net/rpc/fault_point.h"

namespace muster {
namespace {

ExitCode Complain(const ProgramInfo& program, const absl::Status& error) {
  std::cerr << program.name << ": " << PrintableText(error.message())
            << "\nTry: " << program.name << " --help" << std::endl;
  return ExitCode::kUsage;
}

// Simulates `count` GPUs. For each fault at "gpu.FUNCTION" (fault_point.h), the
// GPU is lost in that call of the simulated driver, whatever the action.
absl::Status SimulateGpus(int count) {
  DeviceSet& devices = DeviceSet::OfProcess();
  RETURN_IF_ERROR(devices.UseSimulatedDevices(count));
  for (const Fault& fault : CurrentFaults()) {
    absl::string_view function = fault.point;
    if (!absl::ConsumePrefix(&function, "gpu.")) continue;
    RETURN_IF_ERROR(devices.FailSimulatedDevices(function, fault.occurrence));
  }
  return absl::OkStatus();
}

}  // namespace

std::variant<TaskOptions, ExitCode> StartProgram(
    const ProgramInfo& program, int argc, const char* const* argv,
    absl::FunctionRef<absl::Status(const TaskOptions&)> check) {
  ReportResourceFailures(program.name);
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0),
                                           argv + argc);
  const absl::StatusOr<CommandLine> line = ParseArguments(program, arguments);
  if (!line.ok()) return Complain(program, line.status());
  if (line->help.has_value()) {
    std::cout << Help(program, *line->help) << std::flush;
    return ExitCode::kOk;
  }
  if (line->version) {
    std::cout << program.name << " " << std::string(kVersion) << std::endl;
    return ExitCode::kOk;
  }
  if (line->explain.has_value()) {
    const absl::StatusOr<std::string> text = program.explain(*line->explain);
    if (!text.ok()) return Complain(program, text.status());
    std::cout << *text << std::flush;
    return ExitCode::kOk;
  }
  absl::StatusOr<TaskOptions> options = ResolveTaskOptions(*line);
  if (!options.ok()) return Complain(program, options.status());
  if (CheckConfigWanted()) {
    std::cout << DescribeCluster(options->config) << std::flush;
  }
  if (options->gpus.simulated_count > 0) {
    const absl::Status status = SimulateGpus(options->gpus.simulated_count);
    if (!status.ok()) return Complain(program, status);
  }
  if (options->gpus.tensor_float_32) {
    const absl::Status status =
        DeviceSet::OfProcess().EnableTensorFloat32(true);
    if (!status.ok()) return Complain(program, status);
  }
  DeviceSet::OfProcess().CaptureSteps(options->gpus.captures_steps);
  EnableCheckNumerics(options->check_numerics);
  if (absl::Status status = check(*options); !status.ok()) {
    return Complain(program, status);
  }
  if (absl::Status status = CheckResourceLimits(); !status.ok()) {
    return static_cast<ExitCode>(FinishProgram(program, status));
  }
  if (absl::Status status = CheckTransportIsProtected(*options); !status.ok()) {
    return Complain(program, status);
  }
  if (CheckConfigWanted()) return ExitCode::kOk;
  SetLogFormat(options->log_format);
  SetMinimumLogSeverity(options->log_severity);
  if (!options->run_dir.empty()) {
    WriteTaskLog(options->config, program.name, options->run_dir);
  }
  // Until ShutdownSignals exists, a thread that received one of these signals
  // would end the process at once, which is the system's default.
  ShutdownSignals::Block();
  return *std::move(options);
}

int FinishProgram(const ProgramInfo& program, const absl::Status& status) {
  if (!status.ok()) {
    WriteLogLine(LogSeverity::kError,
                 absl::StrCat(program.name, ": ", status.message()));
  }
  return static_cast<int>(ExitCodeOf(status));
}

}  // namespace muster
