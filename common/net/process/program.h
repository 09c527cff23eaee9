#ifndef COMMON_NET_PROCESS_PROGRAM_H_
#define COMMON_NET_PROCESS_PROGRAM_H_

#include <variant>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/net/process/exit_code.h"
#include "common/net/process/program_info.h"
#include "common/net/process/task_options.h"

namespace muster {

// The first thing a main does. Reads the command line, the environment and
// TF_CONFIG, and answers --help, --version and --check_config on standard
// output.
//
//   int main(int argc, char** argv) {
//     const auto start = StartProgram(kProgram, argc, argv, CheckIsServer);
//     if (auto* code = std::get_if<ExitCode>(&start)) {
//       return static_cast<int>(*code);
//     }
//     const auto& options = std::get<TaskOptions>(start);
//
// `check` is what this program asks of its options beyond that they make sense:
// that the task is a ps, that the job file can be read. An ExitCode is returned
// when the program has nothing more to do: kOk after an answer, kUsage after an
// error, which has been printed with the way to --help. Otherwise SIGINT and
// SIGTERM are held back until ShutdownSignals is made.
std::variant<TaskOptions, ExitCode> StartProgram(
    const ProgramInfo& program, int argc, const char* const* argv,
    absl::FunctionRef<absl::Status(const TaskOptions&)> check);

// The last thing a main does: prints `status` if it is an error, and returns
// what the process is to end with.
int FinishProgram(const ProgramInfo& program, const absl::Status& status);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_PROGRAM_H_
