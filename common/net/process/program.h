#ifndef COMMON_NET_PROCESS_PROGRAM_H_
#define COMMON_NET_PROCESS_PROGRAM_H_

#include <variant>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/net/process/exit_code.h"
#include "common/net/process/program_info.h"
#include "common/net/process/task_options.h"

namespace muster {

// Called first in main(). Reads the command line, the environment and
// TF_CONFIG, and prints the answers to --help, --version and --check_config to
// standard output.
//
//   int main(int argc, char** argv) {
//     const auto start = StartProgram(kProgram, argc, argv, CheckIsServer);
//     if (auto* code = std::get_if<ExitCode>(&start)) {
//       return static_cast<int>(*code);
//     }
//     const auto& options = std::get<TaskOptions>(start);
//
// `check` checks requirements of this program on valid options, such as that
// the task is a ps, or that the job file can be read. Returns an ExitCode if
// the program is to exit: kOk after an answer; kUsage after an error, which has
// been printed with a reference to --help; kFailure if a resource limit of the
// process is too low. Otherwise blocks SIGINT and SIGTERM until ShutdownSignals
// is created.
std::variant<TaskOptions, ExitCode> StartProgram(
    const ProgramInfo& program, int argc, const char* const* argv,
    absl::FunctionRef<absl::Status(const TaskOptions&)> check);

// Called last in main(). Logs `status` if it is an error, and returns the exit
// code of the process.
int FinishProgram(const ProgramInfo& program, const absl::Status& status);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_PROGRAM_H_
