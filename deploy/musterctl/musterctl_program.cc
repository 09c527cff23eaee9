#include "deploy/musterctl/musterctl_program.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/base/did_you_mean.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/system/small_file.h"
#include "common/io/storage/disk.h"
#include "common/net/process/command_line.h"
#include "common/net/process/exit_code.h"
#include "common/net/process/help.h"
#include "common/net/process/program.h"
#include "common/net/process/program_info.h"
#include "common/net/process/shutdown_signals.h"
#include "common/net/process/version.h"
#include "common/net/rpc/tls_context.h"
#include "deploy/musterctl/copy_files.h"
#include "deploy/musterctl/exchange_files.h"
#include "deploy/musterctl/gen_certs.h"
#include "deploy/musterctl/job_client.h"
#include "deploy/musterctl/status_view.h"

ABSL_FLAG(std::string, status, "localhost:9090",
          "The host:port of the status pages of the task that leads the job: "
          "its --status_port, which its first lines print.");
ABSL_FLAG(bool, json, false, "Prints /status.json as it is.");
ABSL_FLAG(absl::Duration, interval, absl::Seconds(2),
          "How often watch prints the status.");
ABSL_FLAG(absl::Duration, timeout, absl::Minutes(1),
          "How long a request may take. A request that takes longer may still "
          "take effect.");
ABSL_FLAG(absl::Duration, duration, absl::Seconds(5),
          "How long trace records: up to 10m.");

// Defined in common/net/process/task_flags.cc.
ABSL_DECLARE_FLAG(std::string, status_token_file);
ABSL_DECLARE_FLAG(std::string, tls_cert);
ABSL_DECLARE_FLAG(std::string, tls_key);
ABSL_DECLARE_FLAG(std::string, tls_ca);
ABSL_DECLARE_FLAG(std::string, tls_dir);

namespace muster {
namespace {

const ProgramInfo& Program() {
  static const ProgramInfo* const program = new ProgramInfo{
      .name = "musterctl",
      .summary =
          "shows and controls a running job, makes the certificates of its "
          "tasks, and copies its files.\n\n"
          "status prints training, tasks and problems; watch repeats it; slow "
          "prints which tasks delay the others. They read the status pages of "
          "the task that leads the job (--status_port).\n\n"
          "checkpoint writes a checkpoint between two steps and prints its "
          "prefix. drain TASK takes a worker out of a job with parameter "
          "servers: it finishes its steps, gets no more, and its process ends "
          "with status 0. Of chief:0 it ends the process, and the other tasks "
          "wait for the next coordinator. stop ends training after the current "
          "step; the job "
          "then saves and ends as after its last epoch. trace records what all "
          "tasks do for a while, and prints it in Chrome's format. These need "
          "a task with --control_port, and with TLS the certificate of an "
          "operator.\n\n"
          "gen-certs makes the certificates with which tasks speak TLS: "
          "ROLE-INDEX.pem and ROLE-INDEX.key for each task and operator, and "
          "ca.pem for all. Keep ca.key away from the tasks: it can make "
          "more.\n\n"
          "copy FROM TO copies the files in and below a folder, the URL of one "
          "in an object store, or \"-\": an archive of tar on standard input "
          "or output. exchange FOLDER passes files of standard input to a "
          "folder "
          "and new files of the folder to standard output, until standard "
          "input "
          "ends. sleep waits for SIGTERM. It keeps a pod alive into which "
          "files "
          "are copied.",
      .usage = "musterctl COMMAND [OPERANDS] [flags]",
      .examples =
          "  musterctl status --status=localhost:9090\n"
          "  musterctl checkpoint --status=h0:9090 --tls_dir=certs\n"
          "  musterctl drain worker:1 --status=h0:9090 --tls_dir=certs\n"
          "  musterctl trace --duration=2s --status=h0:9090 > trace.json\n"
          "  musterctl gen-certs --job_id=mnist --workers=4 --ps=2 "
          "--out=certs\n"
          "  musterctl copy run s3://training/digits\n"
          "  ps --tls_cert=certs/ps-0.pem --tls_key=certs/ps-0.key "
          "--tls_ca=certs/ca.pem\n",
      .topics = {{"A running job",
                  {"status", "status_token_file", "json", "interval", "timeout",
                   "duration", "tls_cert", "tls_key", "tls_ca", "tls_dir"}},
                 {"Certificates",
                  {"job_id", "chiefs", "workers", "ps", "operators", "validity",
                   "out"}}},
      .settings = std::nullopt};
  return *program;
}

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  if (path.empty()) return "";
  const absl::StatusOr<std::string> text = ReadSmallFile(path);
  if (!text.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--status_token_file: ", text.status().message()));
  }
  return std::string(absl::StripAsciiWhitespace(*text));
}

absl::StatusOr<TlsFiles> OperatorTlsFiles() {
  TlsFiles files = {.certificate = absl::GetFlag(FLAGS_tls_cert),
                    .key = absl::GetFlag(FLAGS_tls_key),
                    .ca = absl::GetFlag(FLAGS_tls_ca)};
  const std::string folder = absl::GetFlag(FLAGS_tls_dir);
  const bool is_whole =
      !files.certificate.empty() && !files.key.empty() && !files.ca.empty();
  if (folder.empty() && (files.empty() || is_whole)) return files;
  if (!folder.empty() && files.empty()) {
    return TlsFilesIn(folder, "operator", 0);
  }
  return absl::InvalidArgumentError(
      "expected --tls_cert, --tls_key and --tls_ca together, or --tls_dir with "
      "operator-0.pem, operator-0.key and ca.pem, or none for plaintext");
}

absl::StatusOr<JobClient> MakeClient() {
  JobClient::Options options = {.status_address = absl::GetFlag(FLAGS_status),
                                .token = "",
                                .tls = {},
                                .timeout = absl::GetFlag(FLAGS_timeout)};
  ASSIGN_OR_RETURN(options.token,
                   ReadToken(absl::GetFlag(FLAGS_status_token_file)));
  ASSIGN_OR_RETURN(options.tls, OperatorTlsFiles());
  if (options.timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("--timeout: expected more than 0");
  }
  return JobClient(std::move(options));
}

absl::Status PrintStatus(const JobClient& client) {
  ASSIGN_OR_RETURN(const std::string status, client.Status());
  if (absl::GetFlag(FLAGS_json)) {
    std::cout << status << std::endl;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::string text, StatusText(status));
  std::cout << text << std::flush;
  return absl::OkStatus();
}

// Prints the status repeatedly, until the task has ended or a signal arrives.
absl::Status Watch(const JobClient& client) {
  const absl::Duration interval = absl::GetFlag(FLAGS_interval);
  if (interval < absl::Milliseconds(100)) {
    return absl::InvalidArgumentError("--interval: expected at least 100ms");
  }
  const bool is_terminal = isatty(STDOUT_FILENO) != 0;
  const ShutdownSignals signals;
  RETURN_IF_ERROR(PrintStatus(client));
  while (!signals.AwaitSignal(Clock::Real()->Now() + interval)) {
    // Clears the screen.
    if (is_terminal) std::cout << "\x1b[H\x1b[2J";
    const absl::Status printed = PrintStatus(client);
    if (absl::IsUnavailable(printed)) {
      std::cout << "the task has ended: " << std::string(printed.message())
                << std::endl;
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(printed);
  }
  return absl::OkStatus();
}

absl::Status PrintSlow(const JobClient& client) {
  ASSIGN_OR_RETURN(const std::string status, client.Status());
  ASSIGN_OR_RETURN(const std::string text, SlowTasksText(status));
  std::cout << text << std::flush;
  return absl::OkStatus();
}

absl::Status Checkpoint(const JobClient& client) {
  ASSIGN_OR_RETURN(const std::string prefix, client.Checkpoint());
  std::cout << prefix << std::endl;
  return absl::OkStatus();
}

absl::Status Drain(const JobClient& client, const std::string& task) {
  RETURN_IF_ERROR(client.Drain(task));
  std::cout << task << " has left the job" << std::endl;
  return absl::OkStatus();
}

absl::Status Stop(const JobClient& client) {
  RETURN_IF_ERROR(client.Stop());
  std::cout << "training has ended; the job saves and ends" << std::endl;
  return absl::OkStatus();
}

absl::Status SleepUntilSignal() {
  const ShutdownSignals signals;
  while (!signals.AwaitSignal(Clock::Real()->Now() + absl::Hours(1))) {
  }
  return absl::OkStatus();
}

absl::Status Trace(const JobClient& client) {
  ASSIGN_OR_RETURN(const std::string trace,
                   client.Trace(absl::GetFlag(FLAGS_duration)));
  std::cout << trace << std::endl;
  return absl::OkStatus();
}

constexpr absl::string_view kCommands[] = {
    "status", "watch",     "slow", "checkpoint", "drain", "stop",
    "trace",  "gen-certs", "copy", "exchange",   "sleep"};

absl::Status CheckCommand(const std::string& command,
                          const std::vector<std::string>& arguments) {
  const std::string known = absl::StrJoin(kCommands, ", ");
  if (command.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a command is missing; expected one of ", known));
  }
  if (std::find(std::begin(kCommands), std::end(kCommands), command) ==
      std::end(kCommands)) {
    const std::string hint = DidYouMean(command, kCommands);
    return absl::InvalidArgumentError(
        absl::StrCat("\"", command, "\" is not a command",
                     hint.empty() ? absl::StrCat("; expected ", known) : hint));
  }
  const size_t expected = command == "drain" ? 1 : command == "copy" ? 2 : 0;
  if (command == "exchange") {
    if (arguments.size() >= 2) return absl::OkStatus();
  } else if (arguments.size() == expected) {
    return absl::OkStatus();
  }
  if (command == "drain") {
    return absl::InvalidArgumentError(
        "drain needs one task, as in: musterctl drain worker:1");
  }
  if (command == "exchange") {
    return absl::InvalidArgumentError(
        "exchange needs a folder and names, as in: musterctl exchange run a b");
  }
  if (command == "copy") {
    return absl::InvalidArgumentError(
        "copy needs two folders, as in: musterctl copy run s3://training/run");
  }
  return absl::InvalidArgumentError(absl::StrCat(
      command, " takes no argument, got \"", arguments.front(), "\""));
}

absl::Status Run(const std::string& command,
                 const std::vector<std::string>& arguments) {
  if (command == "gen-certs") return GenerateCertificates();
  if (command == "sleep") return SleepUntilSignal();
  if (command == "exchange") {
    return ExchangeFiles(arguments.front(),
                         {arguments.begin() + 1, arguments.end()});
  }
  if (command == "copy") {
    return CopyFiles(arguments[0], arguments[1], Disk::Real());
  }
  ASSIGN_OR_RETURN(const JobClient client, MakeClient());
  if (command == "status") return PrintStatus(client);
  if (command == "watch") return Watch(client);
  if (command == "slow") return PrintSlow(client);
  if (command == "checkpoint") return Checkpoint(client);
  if (command == "drain") return Drain(client, arguments.front());
  if (command == "trace") return Trace(client);
  return Stop(client);
}

int Complain(const absl::Status& status) {
  std::cerr << "musterctl: " << std::string(status.message())
            << "\nTry: musterctl --help" << std::endl;
  return static_cast<int>(ExitCode::kUsage);
}

}  // namespace

int MusterctlMain(int argc, char** argv) {
  std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  // The command and its operands precede the flags.
  const auto first_flag = std::find_if(
      arguments.begin(), arguments.end(), [](const std::string& argument) {
        // "-" is an operand of copy.
        return argument.size() > 1 && argument.starts_with("-");
      });
  std::vector<std::string> operands(arguments.begin(), first_flag);
  arguments.erase(arguments.begin(), first_flag);
  std::string command;
  if (!operands.empty()) {
    command = operands.front();
    operands.erase(operands.begin());
  }
  const absl::StatusOr<CommandLine> line = ParseArguments(Program(), arguments);
  if (!line.ok()) return Complain(line.status());
  if (line->help.has_value()) {
    std::cout << Help(Program(), *line->help) << std::flush;
    return 0;
  }
  if (line->version) {
    std::cout << "musterctl " << std::string(kVersion) << std::endl;
    return 0;
  }
  const absl::Status usage = CheckCommand(command, operands);
  if (!usage.ok()) return Complain(usage);
  ShutdownSignals::Block();
  const absl::Status status = Run(command, operands);
  if (absl::IsInvalidArgument(status)) return Complain(status);
  return FinishProgram(Program(), status);
}

}  // namespace muster
