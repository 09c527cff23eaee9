#include "deploy/launch/launch_program.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/types/optional.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/available_cpus.h"
#include "common/io/storage/object_url.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/command_line.h"
#include "common/net/process/exit_code.h"
#include "common/net/process/help.h"
#include "common/net/process/port_reservation.h"
#include "common/net/process/program.h"
#include "common/net/process/program_info.h"
#include "common/net/process/resource_failure.h"
#include "common/net/process/run_lease.h"
#include "common/net/process/shutdown_signals.h"
#include "common/net/process/task_flags.h"
#include "common/net/process/task_options.h"
#include "common/net/process/version.h"
#include "common/net/rpc/certificate_authority.h"
#include "common/net/rpc/method_access.h"
#include "common/net/rpc/tls_context.h"
#include "deploy/launch/config_check.h"
#include "deploy/launch/engine_mode.h"
#include "deploy/launch/executable_finder.h"
#include "deploy/launch/launcher.h"
#include "deploy/launch/model_job.h"
#include "deploy/launch/role_executable.h"
#include "deploy/launch/task_counts.h"
#include "deploy/launch/task_plan.h"

ABSL_FLAG(std::string, model, "",
          "A compiled model of Keras, FILE.keras, trained on --train without a "
          "job file. The job file is written into --run_dir.");
ABSL_FLAG(std::string, train, "",
          "The training data of --model: FILE.csv with a header, or FILE.npy "
          "with a row of features for each example.");
ABSL_FLAG(std::string, label, "",
          "The labels of --train: a column of the CSV file, by default "
          "\"label\", or a .npy file.");
ABSL_FLAG(std::string, validation, "", "The validation data, as --train.");
ABSL_FLAG(std::string, validation_label, "",
          "The .npy file with the labels of --validation.");
ABSL_FLAG(absl::optional<int64_t>, epochs, absl::nullopt,
          "How often --model is trained on all examples; 1 by default.");
ABSL_FLAG(absl::optional<int64_t>, batch_size, absl::nullopt,
          "Examples of one step of --model; 32 by default.");
ABSL_FLAG(bool, chief, true,
          "Starts the coordinator. With --nochief you start it yourself, "
          "with the TF_CONFIG that is printed.");
ABSL_FLAG(bool, evaluator, false,
          "Starts an evaluator, which scores each new checkpoint.");
ABSL_FLAG(std::string, program, "",
          "Your own executable, started in every role with the arguments "
          "after \"--\". By default Muster's own executables run --job.");
ABSL_FLAG(
    std::string, restart, "",
    "Starts tasks again that were lost: alone for any number of times, =N "
    "for at most N times each. A coordinator is started again after a "
    "signal or status 138, but not after a failure, which ends the job. A "
    "task that keeps ending right after its start is given up. With --slurm: "
    "how often all tasks are started again, by default 10 times. With "
    "--kubernetes: how many pods of a role may fail, by default 20.");
ABSL_FLAG(std::string, tls, "no",
          "\"auto\" lets the tasks speak TLS, with certificates that are drawn "
          "for this run and lie in tls/ of its --run_dir, or with --kubernetes "
          "in the Secret NAME-tls.");
ABSL_FLAG(int, cores, 0,
          "Cores to divide among the tasks; 0 takes this machine's.");
ABSL_FLAG(std::string, bin_dir, "",
          "Where coordinator, worker and ps lie. By default beside launch, or "
          "in the build tree around it.");

ABSL_FLAG(bool, task, false,
          "Becomes the executable of this task's role, coordinator, worker or "
          "ps, with all other flags: one command line for srun and for pods. "
          "The role is read as --cluster_resolver says.");
ABSL_DECLARE_FLAG(std::string, job);
ABSL_DECLARE_FLAG(int, min_workers);
ABSL_DECLARE_FLAG(std::string, run_dir);
ABSL_DECLARE_FLAG(bool, temporary_run_dir);
ABSL_DECLARE_FLAG(uint32_t, log_megabytes);
ABSL_DECLARE_FLAG(absl::Duration, grace_period);

namespace muster {
namespace {

constexpr absl::string_view kAnyNumberOfTimes = "always";
// Longer than any run, because the certificates are not replaced.
constexpr absl::Duration kCertificateValidity = absl::Hours(10 * 365 * 24);

// Returns the flags with this `passing` that do not have their default values.
std::vector<std::string> GivenFlags(FlagPassing passing) {
  std::vector<std::string> given;
  for (const FlagTopic& topic : PassedTaskFlags(passing)) {
    for (const std::string& name : topic.flags) {
      if (IsGiven(name)) given.push_back(name);
    }
  }
  return given;
}

// Returns the variables that set the flags in a task.
std::map<std::string, std::string> EnvironmentOf(FlagPassing passing) {
  std::map<std::string, std::string> environment;
  for (const std::string& name : GivenFlags(passing)) {
    environment[absl::StrCat("MUSTER_", absl::AsciiStrToUpper(name))] =
        absl::FindCommandLineFlag(name)->CurrentValue();
  }
  return environment;
}

// Returns the flags of launch, and the flags that it passes on to tasks.
std::vector<FlagTopic> LaunchFlags() {
  std::vector<FlagTopic> topics = {
      {"What to train", {"job", "program", "run_dir"}},
      {"A model of Keras without a job file",
       {"model", "train", "label", "validation", "validation_label", "epochs",
        "batch_size"}},
      {"The cluster",
       {"workers", "ps", "chief", "evaluator", "cores", "bin_dir",
        "check_config", "check_data"}},
      {"Waiting and giving up", {"restart"}},
      {"How tensors are sent", {"tls"}}};
  for (const FlagTopic& passed : PassedTaskFlags(FlagPassing::kToAll)) {
    const auto own = std::find_if(
        topics.begin(), topics.end(),
        [&](const FlagTopic& topic) { return topic.title == passed.title; });
    if (own == topics.end()) {
      topics.push_back(passed);
      continue;
    }
    own->flags.insert(own->flags.end(), passed.flags.begin(),
                      passed.flags.end());
  }
  FlagTopic leader = {
      .title = "Watching and controlling the job, of the task that leads it",
      .flags = {}};
  for (const FlagTopic& passed : PassedTaskFlags(FlagPassing::kToLeader)) {
    leader.flags.insert(leader.flags.end(), passed.flags.begin(),
                        passed.flags.end());
  }
  topics.push_back(std::move(leader));
  topics.push_back({"Slurm and Kubernetes", EngineFlags()});
  return topics;
}

const ProgramInfo& Program() {
  static const ProgramInfo* const program = new ProgramInfo{
      .name = "launch",
      .summary =
          "starts a training cluster on this machine, one real process for "
          "each task with its own TF_CONFIG, shows what they write behind "
          "their names, and ends with the job's status.",
      .usage =
          "launch --job=FILE [flags]\n"
          "       launch --model=FILE.keras --train=FILE.csv [flags]\n"
          "       launch --program=BINARY [flags] -- [arguments]\n"
          "       launch --slurm --job=FILE [flags] > FILE.sbatch\n"
          "       launch --kubernetes --image=IMAGE --job=FILE [flags]\n"
          "       launch --task [flags of the task]",
      .examples =
          "  launch --workers=2 --ps=2 --job=examples/digits/digits.job\n"
          "  launch --workers=4 --ps=0 --job=mnist.job --set data_dir=/data\n"
          "  launch --workers=2 --ps=1 --model=model.keras --train=train.csv\n"
          "  launch --workers=2 --ps=1 --restart --program=./train -- --fast\n",
      .topics = LaunchFlags(),
      .settings = std::nullopt};
  return *program;
}

// `launch --task` accepts all flags of tasks.
const ProgramInfo& TaskProgram() {
  static const ProgramInfo* const program = [] {
    auto* const info = new ProgramInfo(Program());
    info->topics = TaskFlags(FlagUsers::kAny);
    info->topics.push_back(
        {.title = "Slurm and Kubernetes", .flags = {"task", "bin_dir"}});
    return info;
  }();
  return *program;
}

// --slurm and --kubernetes also accept all flags of tasks.
const ProgramInfo& EngineProgram() {
  static const ProgramInfo* const program = [] {
    auto* const info = new ProgramInfo(Program());
    std::set<std::string> listed;
    for (const FlagTopic& topic : info->topics) {
      listed.insert(topic.flags.begin(), topic.flags.end());
    }
    for (FlagTopic& topic : TaskFlags(FlagUsers::kAny)) {
      std::erase_if(topic.flags, [&](const std::string& flag) {
        return listed.contains(flag);
      });
      topic.title = absl::StrCat("Flags of the tasks: ", topic.title);
      if (!topic.flags.empty()) info->topics.push_back(std::move(topic));
    }
    return info;
  }();
  return *program;
}

const ProgramInfo& ProgramFor(const std::vector<std::string>& arguments) {
  if (IsTaskMode(arguments)) return TaskProgram();
  return IsEngineMode(arguments) ? EngineProgram() : Program();
}

// Replaces --restart without a value with --restart=always. Abseil would take
// the next argument as the value.
std::vector<std::string> ExpandRestartFlag(int argc, char** argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  for (std::string& argument : arguments) {
    if (argument == "--") break;
    if (argument == "--restart") {
      argument = absl::StrCat("--restart=", kAnyNumberOfTimes);
    }
  }
  return arguments;
}

// Returns the value of --restart; unset if the flag is not set.
absl::StatusOr<std::optional<int>> RestartCountMax() {
  const std::string text = absl::GetFlag(FLAGS_restart);
  if (text.empty()) return std::nullopt;
  if (text == "no") return 0;
  if (text == kAnyNumberOfTimes) return std::numeric_limits<int>::max();
  int count = 0;
  if (absl::SimpleAtoi(text, &count) && count >= 0) return count;
  return absl::InvalidArgumentError(
      absl::StrCat("--restart=", text, ": a number, \"always\" or \"no\""));
}

// Creates the folder for the files that launch itself writes: logs,
// certificates, and the job of --model. It is --run_dir, unless that is empty
// or a URL.
absl::StatusOr<std::string> MakeFolder() {
  std::filesystem::path path = absl::GetFlag(FLAGS_run_dir);
  if (path.empty() || IsObjectUrl(path.string())) {
    path = absl::StrCat(
        "runs/",
        absl::FormatTime("%Y%m%d-%H%M%S", absl::Now(), absl::LocalTimeZone()),
        "-", getpid());
  }
  std::error_code error;
  path = std::filesystem::absolute(path, error);
  std::filesystem::create_directories(path / "logs", error);
  if (error) {
    return absl::InvalidArgumentError(absl::StrCat("--run_dir: cannot make ",
                                                   (path / "logs").string(),
                                                   ": ", error.message()));
  }
  return path.string();
}

// Returns where the results of the job are. A custom program may not write a
// summary.
std::string ResultsOf(const ClusterPlan& plan, const std::string& log_dir) {
  if (IsObjectUrl(plan.run_dir)) return plan.run_dir;
  std::string summary = absl::StrCat(plan.run_dir, "/summary.json");
  return access(summary.c_str(), F_OK) == 0 ? summary : log_dir;
}

// Checks that no flag is set that is used with --model only.
absl::Status ExpectNoModelFlags() {
  for (absl::string_view name : {"train", "label", "validation",
                                 "validation_label", "epochs", "batch_size"}) {
    if (!IsGiven(name)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", name,
                     " is for --model; a job file or a program has "
                     "its own"));
  }
  return absl::OkStatus();
}

// Checks that exactly one of --job, --program and --model is set.
absl::Status CheckWhatToTrain() {
  std::vector<std::string> given;
  for (absl::string_view name : {"job", "program", "model"}) {
    const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    if (!flag->CurrentValue().empty()) {
      given.push_back(absl::StrCat("--", name));
    }
  }
  if (given.empty()) {
    return absl::InvalidArgumentError(
        "nothing to train: give --job=FILE, --model=FILE.keras or "
        "--program=BINARY");
  }
  if (given.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(given[0], " and ", given[1], " exclude each other"));
  }
  return given[0] == "--model" ? absl::OkStatus() : ExpectNoModelFlags();
}

ModelJob ModelJobOfFlags() {
  ModelJob job = {.model = absl::GetFlag(FLAGS_model),
                  .train = absl::GetFlag(FLAGS_train),
                  .label = absl::GetFlag(FLAGS_label),
                  .validation = absl::GetFlag(FLAGS_validation),
                  .validation_label = absl::GetFlag(FLAGS_validation_label)};
  const absl::optional<int64_t> epochs = absl::GetFlag(FLAGS_epochs);
  if (epochs.has_value()) job.epochs = *epochs;
  const absl::optional<int64_t> batch_size = absl::GetFlag(FLAGS_batch_size);
  if (batch_size.has_value()) job.batch_size = *batch_size;
  return job;
}

// Writes the job file of --model into the run's folder. Returns its path.
absl::StatusOr<std::string> WriteModelJob(const std::string& text,
                                          const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/model.job");
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) {
    return absl::UnavailableError(absl::StrCat("cannot write ", path));
  }
  std::cerr << "launch: the job file is " << path << std::endl;
  return path;
}

absl::StatusOr<ClusterPlan> MakePlan(const CommandLine& line) {
  ClusterPlan plan;
  plan.worker_count = absl::GetFlag(FLAGS_workers);
  plan.ps_count = absl::GetFlag(FLAGS_ps);
  plan.worker_count_min = absl::GetFlag(FLAGS_min_workers);
  // Without parameter servers worker 0 is the chief. Without workers as well,
  // the chief is the only process.
  const bool has_place = plan.ps_count > 0 || absl::GetFlag(FLAGS_workers) == 0;
  plan.with_chief = has_place && absl::GetFlag(FLAGS_chief);
  plan.with_evaluator = absl::GetFlag(FLAGS_evaluator);
  plan.core_count = absl::GetFlag(FLAGS_cores);
  if (plan.core_count <= 0) {
    plan.core_count = AvailableCpus();
  }
  plan.job_file = absl::GetFlag(FLAGS_job);
  plan.settings = line.settings;
  RETURN_IF_ERROR(CheckWhatToTrain());
  const std::string program = absl::GetFlag(FLAGS_program);
  if (program.empty() && !line.arguments.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", line.arguments.front(),
        "\" stands behind \"--\", where arguments of --program are, and there "
        "is no --program"));
  }
  if (!program.empty() && !line.settings.empty()) {
    const auto& [name, value] = *line.settings.begin();
    return absl::InvalidArgumentError(
        absl::StrCat("--set ", name, "=", value,
                     " is for a job file; hand it to the program "
                     "behind \"--\": launch --program=",
                     program, " -- --set ", name, "=", value));
  }
  if (!program.empty()) {
    plan.program = {program};
    plan.program.insert(plan.program.end(), line.arguments.begin(),
                        line.arguments.end());
  }
  if (!plan.job_file.empty() && access(plan.job_file.c_str(), R_OK) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--job: cannot read ", plan.job_file));
  }
  plan.environment = EnvironmentOf(FlagPassing::kToAll);
  plan.leader_environment = EnvironmentOf(FlagPassing::kToLeader);
  return plan;
}

absl::StatusOr<bool> TlsWanted() {
  const std::string mode = absl::GetFlag(FLAGS_tls);
  if (mode == "no" || mode == "auto") return mode == "auto";
  return absl::InvalidArgumentError(
      absl::StrCat("--tls=", mode, ": \"auto\" or \"no\""));
}

// Returns the output of --slurm or --kubernetes.
absl::StatusOr<std::string> TextForEngine(const CommandLine& line) {
  EngineSettings settings;
  ASSIGN_OR_RETURN(settings.tls, TlsWanted());
  ASSIGN_OR_RETURN(settings.restart_count_max, RestartCountMax());
  settings.bin_dir = absl::GetFlag(FLAGS_bin_dir);
  ASSIGN_OR_RETURN(ClusterPlan plan, MakePlan(line));
  if (!absl::GetFlag(FLAGS_model).empty()) {
    return absl::InvalidArgumentError(
        "--model: --slurm and --kubernetes need a job file; give --job=FILE "
        "with model { keras: \"FILE.keras\" }");
  }
  plan.run_dir = absl::GetFlag(FLAGS_run_dir);
  return EngineText(std::move(plan), settings);
}

// Runs --check_config. Returns only on errors: otherwise this process becomes
// the executable that checks the job.
absl::Status CheckConfig(const CommandLine& line) {
  if (EngineModeWanted()) RETURN_IF_ERROR(TextForEngine(line).status());
  ASSIGN_OR_RETURN(ClusterPlan plan, MakePlan(line));
  plan.run_dir = absl::GetFlag(FLAGS_run_dir);
  if (!absl::GetFlag(FLAGS_model).empty()) {
    ASSIGN_OR_RETURN(const std::string text, MakeModelJob(ModelJobOfFlags()));
    ASSIGN_OR_RETURN(plan.job_file, FileInMemory("model.job", text));
  }
  return ExecConfigCheck(
      std::move(plan), CheckDataWanted(), [](absl::string_view name) {
        return FindExecutable(name, OwnPath(), absl::GetFlag(FLAGS_bin_dir));
      });
}

// With --tls=auto, gives every task a certificate. The CA's key exists only
// during this call.
absl::Status ProtectTasks(const std::string& run_folder,
                          std::vector<TaskPlan>* tasks) {
  ASSIGN_OR_RETURN(const bool is_wanted, TlsWanted());
  if (!is_wanted) return absl::OkStatus();
  const std::filesystem::path folder =
      std::filesystem::path(run_folder) / "tls";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) {
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all,
                                 error);
  }
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot make ", folder.string(), ": ", error.message()));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<CertificateAuthority> authority,
                   CertificateAuthority::Create(kCertificateValidity));
  const std::string job = absl::StrCat(absl::Hex(RandomIdentity()));
  for (TaskPlan& task : *tasks) {
    const SpiffeId id = {job, std::string(TaskTypeName(task.task.type)),
                         task.task.index};
    ASSIGN_OR_RETURN(const TlsFiles files,
                     WriteTaskFiles(*authority, id, folder.string()));
    task.environment["MUSTER_TLS_CERT"] = files.certificate;
    task.environment["MUSTER_TLS_KEY"] = files.key;
    task.environment["MUSTER_TLS_CA"] = files.ca;
  }
  return absl::OkStatus();
}

// Prints the TF_CONFIG for a chief that the user starts separately.
void PrintChiefsConfig(const std::vector<TaskPlan>& tasks) {
  const std::string config = tasks.front().environment.at("TF_CONFIG");
  const std::string cluster = config.substr(0, config.find(",\"task\":"));
  std::cerr << "start the chief with\nTF_CONFIG='" << cluster
            << ",\"task\":{\"type\":\"chief\",\"index\":0}}'" << std::endl;
}

absl::StatusOr<int> Launch(const CommandLine& line, ShutdownSignals* signals) {
  RETURN_IF_ERROR(ExpectNoEngineFlags());
  ASSIGN_OR_RETURN(const std::optional<int> restarts, RestartCountMax());
  const int restart_count_max = restarts.value_or(0);
  ASSIGN_OR_RETURN(ClusterPlan plan, MakePlan(line));
  std::optional<std::string> model_job;
  if (!absl::GetFlag(FLAGS_model).empty()) {
    ASSIGN_OR_RETURN(model_job, MakeModelJob(ModelJobOfFlags()));
  }
  const std::string run_dir = absl::GetFlag(FLAGS_run_dir);
  RETURN_IF_ERROR(CheckRunDirIsFree(run_dir));
  ASSIGN_OR_RETURN(const std::string folder, MakeFolder());
  plan.run_dir = IsObjectUrl(run_dir) ? run_dir : folder;
  if (model_job.has_value()) {
    ASSIGN_OR_RETURN(plan.job_file, WriteModelJob(*model_job, folder));
  }
  // The tasks write no log files, because launch writes their output, which
  // includes the log, to files.
  plan.environment["MUSTER_LOG_FILE"] = "false";
  // If parameter servers are not restarted, the coordinator must not wait for
  // them.
  if (restart_count_max == 0 &&
      getenv("MUSTER_SERVER_RETURN_TIMEOUT") == nullptr) {
    plan.environment.emplace("MUSTER_SERVER_RETURN_TIMEOUT", "0");
  }
  std::vector<std::unique_ptr<PortReservation>> reservations;
  std::vector<int> ports;
  for (size_t i = 0; i < TasksOf(plan).size(); ++i) {
    ASSIGN_OR_RETURN(reservations.emplace_back(), PortReservation::Create());
    ports.push_back(reservations.back()->port());
  }
  ASSIGN_OR_RETURN(std::vector<TaskPlan> tasks,
                   PlanTasks(plan, ports, [](absl::string_view name) {
                     return FindExecutable(name, OwnPath(),
                                           absl::GetFlag(FLAGS_bin_dir));
                   }));
  RETURN_IF_ERROR(ProtectTasks(folder, &tasks));
  if (plan.ps_count > 0 && !plan.with_chief) PrintChiefsConfig(tasks);

  const bool on_terminal = isatty(STDOUT_FILENO) == 1;
  Launcher::Options options;
  options.restart.restart_count_max = restart_count_max;
  options.grace_period = absl::GetFlag(FLAGS_grace_period);
  options.log_dir = absl::StrCat(folder, "/logs");
  options.log_bytes_max = int64_t{absl::GetFlag(FLAGS_log_megabytes)} << 20;
  options.share_terminal = on_terminal;
  options.console.color = on_terminal && isatty(STDERR_FILENO) == 1 &&
                          getenv("NO_COLOR") == nullptr;
  const bool names_files = !absl::GetFlag(FLAGS_temporary_run_dir);
  std::cerr << "launch: " << tasks.size()
            << (tasks.size() == 1 ? " process" : " processes")
            << (names_files ? "; logs in " + options.log_dir : "") << std::endl;
  Launcher launcher(plan, std::move(tasks), options, signals);
  const int exit_code = launcher.Run();
  if (exit_code == 0) {
    std::cerr << "launch: the job is done"
              << (names_files ? "; see " + ResultsOf(plan, options.log_dir)
                              : "")
              << std::endl;
  }
  return exit_code;
}

int Complain(const absl::Status& status) {
  FinishProgram(Program(), status);
  std::cerr << "Try: launch --help" << std::endl;
  return static_cast<int>(ExitCode::kUsage);
}

// Replaces this process with the task's executable. Returns only on errors.
absl::Status ExecTask(const CommandLine& line,
                      const std::vector<std::string>& arguments) {
  ASSIGN_OR_RETURN(const TaskOptions options, ResolveTaskOptions(line));
  ASSIGN_OR_RETURN(std::string executable,
                   FindExecutable(ExecutableOfTask(options.config), OwnPath(),
                                  absl::GetFlag(FLAGS_bin_dir)));
  std::vector<std::string> words = ArgumentsOfTask(arguments);
  std::vector<char*> argv = {executable.data()};
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(executable.c_str(), argv.data());
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot start ", executable));
}

}  // namespace

int LaunchMain(int argc, char** argv) {
  ReportResourceFailures(Program().name);
  const std::vector<std::string> arguments = ExpandRestartFlag(argc, argv);
  const bool is_task = IsTaskMode(arguments);
  const ProgramInfo& program = ProgramFor(arguments);
  const absl::StatusOr<CommandLine> line = ParseArguments(program, arguments);
  if (!line.ok()) return Complain(line.status());
  if (line->help.has_value()) {
    std::cout << Help(IsEngineMode(arguments) ? program : Program(),
                      *line->help)
              << std::flush;
    return 0;
  }
  if (line->version) {
    std::cout << "launch " << std::string(kVersion) << std::endl;
    return 0;
  }
  if (is_task) return Complain(ExecTask(*line, arguments));
  if (CheckConfigWanted()) return Complain(CheckConfig(*line));
  if (EngineModeWanted()) {
    const absl::StatusOr<std::string> text = TextForEngine(*line);
    if (!text.ok()) return Complain(text.status());
    std::cout << *text << std::flush;
    return 0;
  }
  // The grace period of launch is longer than that of its tasks, because it
  // stops them and waits for their end.
  ShutdownSignals signals(
      {.grace_period =
           2 * absl::GetFlag(FLAGS_grace_period) + absl::Seconds(5)});
  const absl::StatusOr<int> exit_code = Launch(*line, &signals);
  return exit_code.ok() ? *exit_code : Complain(exit_code.status());
}

}  // namespace muster
