#include "common/net/process/task_options.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "common/core/base/available_cpus.h"
#include "common/core/base/status_macros.h"
#include "common/io/storage/object_url.h"
#include "common/net/cluster/address.h"
#include "common/net/cluster/cluster_resolver.h"
#include "common/net/cluster/task_id.h"

ABSL_FLAG(std::string, job, "",
          "The job file: model, data, optimizer, epochs.");
ABSL_FLAG(std::string, run_dir, "",
          "Where summary.json, logs and checkpoints go. By default a new "
          "folder under runs/.");
ABSL_FLAG(absl::optional<uint64_t>, seed, absl::nullopt,
          "Makes initial weights, shuffles and dropout repeatable. By default "
          "the job file's, or drawn at random and printed.");
ABSL_FLAG(
    int, threads, 0,
    "Threads that compute in this process; 0 takes one for each core that "
    "its control group and affinity allow.");
ABSL_FLAG(bool, check_numerics, false,
          "Ends a step with the first value that is NaN or infinite, and names "
          "the operation that made it. To find where a NaN comes from; slow, "
          "and on CPUs only.");
ABSL_FLAG(bool, check_config, false,
          "Reads TF_CONFIG and the flags, prints the cluster they describe and "
          "leaves: with status 0 if it makes sense, 2 if not.");
ABSL_FLAG(std::string, tf_config, "",
          "Taken instead of the environment's TF_CONFIG.");
ABSL_FLAG(std::string, job_name, "",
          "This task's role (chief, worker, ps, evaluator). With --task_index "
          "and the lists of hosts it takes the place of TF_CONFIG.");
ABSL_FLAG(int, task_index, -1,
          "This task's number in its role, counted from 0.");
ABSL_FLAG(std::string, chief_hosts, "", "The chief's host:port.");
ABSL_FLAG(std::string, worker_hosts, "",
          "The workers' host:port,host:port,...");
ABSL_FLAG(std::string, ps_hosts, "",
          "The parameter servers' host:port,host:port,...");
ABSL_FLAG(std::string, cluster_resolver, "auto",
          "Where the cluster is read: \"tf_config\", \"slurm\" (the variables "
          "of srun), \"kubernetes\" (the pod's host name), or \"auto\": "
          "TF_CONFIG if it is set, then Slurm in a step of srun, then "
          "Kubernetes in a pod with --cluster_tasks.");
ABSL_FLAG(std::string, cluster_tasks, "",
          "How many tasks each role has, as in chief=1,ps=1,worker=2, for "
          "Slurm and Kubernetes. Slurm's ranks take the roles in this order; "
          "by default all are workers.");
ABSL_FLAG(int, port_base, 0,
          "The port of a task that Slurm or Kubernetes places. With Slurm, "
          "further tasks of the same host have the next ports. 0 stands for "
          "8888, and with Slurm for a port that depends on the job and the "
          "step, or that srun --resv-ports reserves.");
ABSL_FLAG(std::string, kubernetes_service, "",
          "The headless Service that gives the pods their names. By default "
          "NAME, where the host name is NAME-ROLE-INDEX.");
ABSL_FLAG(std::string, bind_address, "",
          "The host:port to listen on, where that is not this task's entry in "
          "the cluster. By default every interface at that entry's port, or "
          "only this machine's own where the entry says localhost.");
ABSL_FLAG(std::string, tls_cert, "",
          "This task's certificate in PEM, whose URI is "
          "spiffe://muster/JOB/ROLE/INDEX. With --tls_key and --tls_ca, tasks "
          "speak TLS 1.3 and accept only each other. Read again when it "
          "changes.");
ABSL_FLAG(std::string, tls_key, "", "The private key of --tls_cert in PEM.");
ABSL_FLAG(std::string, tls_ca, "",
          "The certificate in PEM of the authority that signs those of the "
          "job's tasks.");
ABSL_FLAG(std::string, tls_dir, "",
          "A folder with this task's ROLE-INDEX.pem and ROLE-INDEX.key and "
          "with ca.pem, as `musterctl gen-certs` makes it. Stands for "
          "--tls_cert, --tls_key and --tls_ca, and is the same for all tasks.");
ABSL_FLAG(bool, insecure, false,
          "Lets tasks on several machines talk in plaintext and take work from "
          "every process that reaches their ports.");
ABSL_FLAG(absl::Duration, startup_timeout, absl::Minutes(10),
          "How long to wait for the other tasks at the start, and for a new "
          "coordinator with --on_coordinator_loss=wait.");
ABSL_FLAG(std::string, on_coordinator_loss, "exit",
          "What a worker or parameter server does when its coordinator is "
          "gone: \"exit\" with status 138, or \"wait\" for a new one.");
ABSL_FLAG(absl::Duration, coordinator_timeout, absl::Seconds(10),
          "A coordinator silent for this long is gone.");
ABSL_FLAG(
    std::string, checkpoint_root, "",
    "Folders and URLs (s3://bucket/folder), separated by commas, in which a "
    "parameter server writes and reads checkpoints when its coordinator asks; "
    "\"/\" for all folders. "
    "Unless given: its --run_dir, what --set and its arguments name, and in a "
    "cluster of one machine its working directory.");
ABSL_FLAG(
    std::string, data_root, "",
    "Folders, separated by commas, below which a worker opens the files that "
    "its coordinator's input pipelines name; \"/\" for anywhere. Unless given: "
    "its --run_dir and what --set and its arguments name; in a cluster of one "
    "machine, anywhere.");
ABSL_FLAG(absl::Duration, server_return_timeout, absl::Seconds(60),
          "How long the coordinator waits for a parameter server that is lost "
          "to be started again, before it gives the job up; 0 for not at all.");
ABSL_FLAG(int, max_recoveries, 100,
          "How often training may be rolled back after the loss of a parameter "
          "server before the job is given up.");
ABSL_FLAG(bool, shared_memory, true,
          "Lets tasks of one machine hand each other tensors in shared "
          "memory: workers that train in sync, and parameter servers with "
          "their clients.");
ABSL_FLAG(bool, raw_sockets, true,
          "Lets workers that train in sync speak over sockets of their own, "
          "beside gRPC. Turn both off, and everything goes over gRPC. With a "
          "certificate, these sockets are encrypted, too.");
ABSL_FLAG(bool, local_connections, true,
          "Lets tasks of one machine and one user that have checked each "
          "other's certificates talk over Unix sockets, which are not "
          "encrypted. With --nolocal_connections gRPC is always encrypted.");
ABSL_FLAG(
    int, lane_port, 0,
    "The port of those sockets, for firewalls; a worker with several GPUs "
    "uses one port for each, from this one up. 0: free ports.");
ABSL_FLAG(absl::Duration, peer_timeout, absl::Seconds(3),
          "A worker that trains in sync with this one and is silent for this "
          "long is gone. The network may drop all packets between two workers "
          "for up to half as long.");
ABSL_FLAG(absl::Duration, hang_report_interval, absl::Seconds(30),
          "How long workers that train in sync wait for one of them before "
          "they print its name.");
ABSL_FLAG(absl::Duration, evaluator_timeout, absl::Hours(7 * 24),
          "How long an evaluator waits for a checkpoint, or for the end of "
          "training, before it gives up; \"inf\" forever.");
ABSL_FLAG(int, status_port, -1,
          "Serves the status page, /status.json, /metrics, /livez and /readyz "
          "on this port; 0 selects a free one and prints it. By default none "
          "are served.");
ABSL_FLAG(std::string, status_host, "localhost",
          "The address of the status pages: \"localhost\", or an IP address of "
          "this machine. Addresses that other machines reach require "
          "--status_token_file.");
ABSL_FLAG(std::string, status_token_file, "",
          "A file with the token that clients of the status pages must send "
          "as \"Authorization: Bearer TOKEN\".");
ABSL_FLAG(std::string, status_job, "",
          "The value of the label muster_job of all metrics. By default the "
          "name of the job file, if there is one.");
ABSL_FLAG(int, control_port, -1,
          "Lets `musterctl checkpoint`, `drain` and `stop` reach the task that "
          "leads the job on this port; 0 selects a free one and prints it. By "
          "default they cannot. With TLS they need a certificate of the role "
          "\"operator\".");
ABSL_FLAG(
    std::string, trace, "",
    "Records what all tasks do, and has the task that leads the job write "
    "it to this file at the end, for chrome://tracing or "
    "ui.perfetto.dev: steps, kernels, collectives and exchanges, on one "
    "clock. Each thread keeps its newest 16,384 spans.");
ABSL_FLAG(std::string, log_format, "text",
          "\"text\", or \"json\" for one JSON object a line.");
ABSL_FLAG(std::string, log_severity, "info",
          "The least severe lines to log: \"info\", \"warning\" or "
          "\"error\".");
ABSL_FLAG(bool, log_file, true,
          "Writes the log also to logs/ROLE-INDEX.log in the run's folder: "
          "--run_dir, or the one that a job without it gets.");
ABSL_FLAG(uint32_t, log_megabytes, 256,
          "A task's log file that grows beyond this is moved to NAME.log.1, in "
          "place of an earlier one; 0 for no bound.");
ABSL_FLAG(absl::Duration, grace_period, absl::Seconds(10),
          "How long an orderly end may take after SIGTERM.");

namespace muster {
namespace {

constexpr int kThreadCountMax = 1024;

constexpr int kCoordinator = 1;
constexpr int kWorker = 2;
constexpr int kServer = 4;
constexpr int kTrainer = kCoordinator | kWorker;
constexpr int kServing = kWorker | kServer;
constexpr int kAll = kCoordinator | kWorker | kServer;

struct TaskFlag {
  absl::string_view topic;
  absl::string_view name;
  int users;
};

constexpr absl::string_view kTraining = "What to train";
constexpr absl::string_view kCluster = "The cluster";
constexpr absl::string_view kSecurity = "Security";
constexpr absl::string_view kWaiting = "Waiting and giving up";
constexpr absl::string_view kRecovery = "Lost parameter servers";
constexpr absl::string_view kObservation = "Status pages and logs";
constexpr absl::string_view kTransport = "How tensors are sent";

// In the order of --help.
constexpr TaskFlag kTaskFlags[] = {
    {kTraining, "job", kTrainer},
    {kTraining, "run_dir", kAll},
    {kTraining, "seed", kTrainer},
    {kTraining, "threads", kAll},
    {kTraining, "gpu_simulated", kTrainer},
    {kTraining, "tensor_float_32", kTrainer},
    {kTraining, "gpu_graphs", kTrainer},
    {kTraining, "check_numerics", kTrainer},
    {kCluster, "check_config", kAll},
    {kCluster, "tf_config", kAll},
    {kCluster, "job_name", kAll},
    {kCluster, "task_index", kAll},
    {kCluster, "chief_hosts", kAll},
    {kCluster, "worker_hosts", kAll},
    {kCluster, "ps_hosts", kAll},
    {kCluster, "cluster_resolver", kAll},
    {kCluster, "cluster_tasks", kAll},
    {kCluster, "port_base", kAll},
    {kCluster, "kubernetes_service", kAll},
    {kCluster, "bind_address", kAll},
    {kSecurity, "tls_cert", kAll},
    {kSecurity, "tls_key", kAll},
    {kSecurity, "tls_ca", kAll},
    {kSecurity, "tls_dir", kAll},
    {kSecurity, "insecure", kAll},
    {kSecurity, "data_root", kWorker},
    {kSecurity, "checkpoint_root", kServer},
    {kWaiting, "startup_timeout", kAll},
    {kWaiting, "grace_period", kAll},
    {kWaiting, "on_coordinator_loss", kServing},
    {kWaiting, "coordinator_timeout", kServing},
    {kWaiting, "peer_timeout", kTrainer},
    {kWaiting, "hang_report_interval", kTrainer},
    {kWaiting, "evaluator_timeout", kTrainer},
    {kRecovery, "server_return_timeout", kCoordinator},
    {kRecovery, "max_recoveries", kCoordinator},
    {kObservation, "status_port", kAll},
    {kObservation, "status_host", kAll},
    {kObservation, "status_token_file", kAll},
    {kObservation, "status_job", kAll},
    {kObservation, "control_port", kAll},
    {kObservation, "trace", kTrainer},
    {kObservation, "log_format", kAll},
    {kObservation, "log_severity", kAll},
    {kObservation, "log_file", kAll},
    {kObservation, "log_megabytes", kAll},
    {kTransport, "shared_memory", kAll},
    {kTransport, "raw_sockets", kTrainer},
    {kTransport, "local_connections", kAll},
    {kTransport, "lane_port", kTrainer},
};

int BitsOf(FlagUsers users) {
  switch (users) {
    case FlagUsers::kCoordinator:
      return kCoordinator;
    case FlagUsers::kWorker:
      return kWorker;
    case FlagUsers::kServer:
      return kServer;
    case FlagUsers::kAny:
      break;
  }
  return kAll;
}

// The name of this machine; empty if it has none.
std::string OwnHostName() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, HOST_NAME_MAX) == 0 ? name : "";
}

absl::StatusOr<ClusterConfig> ResolveClusterConfig() {
  ClusterSources sources;
  sources.hosts.job_name = absl::GetFlag(FLAGS_job_name);
  if (const int index = absl::GetFlag(FLAGS_task_index); index != -1) {
    sources.hosts.task_index = index;
  }
  sources.hosts.chief_hosts = absl::GetFlag(FLAGS_chief_hosts);
  sources.hosts.worker_hosts = absl::GetFlag(FLAGS_worker_hosts);
  sources.hosts.ps_hosts = absl::GetFlag(FLAGS_ps_hosts);
  sources.tf_config = absl::GetFlag(FLAGS_tf_config);
  sources.resolver = absl::GetFlag(FLAGS_cluster_resolver);
  sources.cluster_tasks = absl::GetFlag(FLAGS_cluster_tasks);
  sources.port_base = absl::GetFlag(FLAGS_port_base);
  sources.kubernetes_service = absl::GetFlag(FLAGS_kubernetes_service);
  sources.host_name = OwnHostName();
  return ResolveCluster(
      sources, [](const char* name) -> const char* { return getenv(name); });
}

absl::StatusOr<int> ResolveThreadCount() {
  const int wanted = absl::GetFlag(FLAGS_threads);
  if (wanted < 0 || wanted > kThreadCountMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--threads=", wanted, ": 0 (all cores) to ", kThreadCountMax));
  }
  if (wanted > 0) return wanted;
  return AvailableCpus();
}

absl::StatusOr<std::vector<std::string>> MakeAbsolute(
    absl::string_view flag, std::vector<std::string> folders) {
  for (std::string& folder : folders) {
    if (IsObjectUrl(folder)) {
      RETURN_IF_ERROR(ParseObjectUrl(folder).status());
      continue;
    }
    std::error_code error;
    const std::filesystem::path path =
        std::filesystem::absolute(folder, error).lexically_normal();
    if (error) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", flag, "=", folder, ": ", error.message()));
    }
    folder = path.string();
  }
  return folders;
}

std::vector<std::string> Folders(const absl::Flag<std::string>& flag) {
  return absl::StrSplit(absl::GetFlag(flag), ',', absl::SkipEmpty());
}

// The run's folder, and the folders and URLs that the command line names.
std::vector<std::string> NamedFolders(const CommandLine& line) {
  std::vector<std::string> named;
  const std::string run_dir = absl::GetFlag(FLAGS_run_dir);
  if (!run_dir.empty()) named.push_back(run_dir);
  const auto add = [&named](const std::string& text) {
    std::error_code error;
    if (std::filesystem::is_directory(text, error) ||
        ParseObjectUrl(text).ok()) {
      named.push_back(text);
    }
  };
  for (const auto& [name, value] : line.settings) add(value);
  for (const std::string& argument : line.arguments) add(argument);
  return named;
}

absl::Status ResolveRoots(const CommandLine& line, TaskOptions* options) {
  const bool is_remote = !options->remote_address.empty();
  std::vector<std::string> checkpoints = Folders(FLAGS_checkpoint_root);
  if (checkpoints.empty()) {
    checkpoints = NamedFolders(line);
    if (!is_remote) checkpoints.push_back(".");
  }
  ASSIGN_OR_RETURN(options->checkpoint_roots,
                   MakeAbsolute("checkpoint_root", std::move(checkpoints)));
  std::vector<std::string> data = Folders(FLAGS_data_root);
  if (data.empty() && !is_remote) return absl::OkStatus();
  if (data.empty()) data = NamedFolders(line);
  ASSIGN_OR_RETURN(options->data_roots,
                   MakeAbsolute("data_root", std::move(data)));
  return absl::OkStatus();
}

absl::StatusOr<TlsFiles> ResolveTls(TaskId task) {
  TlsFiles files = {.certificate = absl::GetFlag(FLAGS_tls_cert),
                    .key = absl::GetFlag(FLAGS_tls_key),
                    .ca = absl::GetFlag(FLAGS_tls_ca)};
  if (const std::string folder = absl::GetFlag(FLAGS_tls_dir);
      !folder.empty()) {
    if (!files.empty()) {
      return absl::InvalidArgumentError(
          "--tls_dir stands for --tls_cert, --tls_key and --tls_ca; give "
          "either the folder or the files");
    }
    // It talks to no other task, and has no certificate.
    if (task.type == TaskType::kEvaluator) return files;
    return TlsFilesIn(folder, TaskTypeName(task.type), task.index);
  }
  const bool is_whole =
      !files.certificate.empty() && !files.key.empty() && !files.ca.empty();
  if (files.empty() || is_whole) return files;
  return absl::InvalidArgumentError(
      "--tls_cert, --tls_key and --tls_ca go together: give all three, or none "
      "for plaintext");
}

// The first address that is not of this machine only; an evaluator talks to
// no other task.
std::string RemoteAddress(const ClusterConfig& config,
                          const std::string& listen_address) {
  if (config.IsAlone() || config.task.type == TaskType::kEvaluator) return "";
  std::vector<std::string> addresses;
  for (const TaskId task : config.cluster.Members()) {
    addresses.push_back(config.cluster.Address(task).value_or(""));
  }
  addresses.push_back(listen_address);
  for (const std::string& address : addresses) {
    const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
    if (parsed.ok() && !IsLoopbackHost(parsed->host)) return address;
  }
  return "";
}

absl::StatusOr<OnCoordinatorLoss> ResolveOnCoordinatorLoss() {
  const std::string text = absl::GetFlag(FLAGS_on_coordinator_loss);
  if (text == "exit") return OnCoordinatorLoss::kExit;
  if (text == "wait") return OnCoordinatorLoss::kWait;
  return absl::InvalidArgumentError(
      absl::StrCat("--on_coordinator_loss=", text, ": \"exit\" or \"wait\""));
}

absl::StatusOr<absl::Duration> Positive(absl::string_view name,
                                        absl::Duration value) {
  if (value > absl::ZeroDuration()) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("--", name, "=", absl::FormatDuration(value),
                   ": a duration above zero, as in 30s or 5m"));
}

// TensorFlow listens on every interface. A cluster of localhost has no business
// with other machines.
absl::StatusOr<std::string> ResolveListenAddress(const ClusterConfig& config) {
  const std::string bind = absl::GetFlag(FLAGS_bind_address);
  if (!bind.empty()) {
    const absl::StatusOr<HostPort> parsed = ParseHostPort(bind);
    if (!parsed.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--bind_address: ", parsed.status().message()));
    }
    return parsed->ToString();
  }
  if (!config.cluster.Has(config.task)) return "";
  ASSIGN_OR_RETURN(const std::string own, config.cluster.Address(config.task));
  ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(own));
  if (IsLoopbackHost(address.host)) return own;
  return HostPort{"::", address.port}.ToString();
}

absl::StatusOr<std::optional<int>> ResolvePort(absl::string_view flag,
                                               int port) {
  if (port == -1) return std::nullopt;
  if (port >= 0 && port <= 65535) return port;
  return absl::InvalidArgumentError(absl::StrCat(
      "--", flag, "=", port, ": expected 0 to 65535, or -1 for none"));
}

// `options` has the task's other ports.
absl::StatusOr<int> ResolveLanePort(const TaskOptions& options) {
  const int port = absl::GetFlag(FLAGS_lane_port);
  if (port < 0 || port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--lane_port=", port, ": expected 1 to 65535, or 0 for free ports"));
  }
  if (port == 0) return port;
  const auto taken = [&](absl::string_view by) {
    return absl::InvalidArgumentError(absl::StrCat("--lane_port=", port,
                                                   " is also the port of ", by,
                                                   "; choose another one"));
  };
  const absl::StatusOr<HostPort> listen = ParseHostPort(options.listen_address);
  if (listen.ok() && listen->port == port) return taken("this task");
  if (options.status.port == port) return taken("--status_port");
  if (options.control_port == port) return taken("--control_port");
  return port;
}

absl::StatusOr<TaskOptions::StatusPages> ResolveStatusPages(
    const std::string& job_file) {
  TaskOptions::StatusPages pages;
  ASSIGN_OR_RETURN(
      pages.port, ResolvePort("status_port", absl::GetFlag(FLAGS_status_port)));
  pages.host = absl::GetFlag(FLAGS_status_host);
  pages.token_file = absl::GetFlag(FLAGS_status_token_file);
  if (pages.port.has_value() && !IsLoopbackHost(pages.host) &&
      pages.token_file.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--status_host=", pages.host,
        ": other machines can reach this address, so --status_token_file is "
        "required"));
  }
  pages.job_label = absl::GetFlag(FLAGS_status_job);
  if (pages.job_label.empty()) {
    pages.job_label = std::filesystem::path(job_file).stem().string();
  }
  return pages;
}

absl::StatusOr<LogFormat> ResolveLogFormat() {
  const std::string format = absl::GetFlag(FLAGS_log_format);
  if (format == "text") return LogFormat::kText;
  if (format == "json") return LogFormat::kJson;
  return absl::InvalidArgumentError(
      absl::StrCat("--log_format=", format, ": expected \"text\" or \"json\""));
}

absl::StatusOr<LogSeverity> ResolveLogSeverity() {
  const std::string severity = absl::GetFlag(FLAGS_log_severity);
  if (severity == "info") return LogSeverity::kInfo;
  if (severity == "warning") return LogSeverity::kWarning;
  if (severity == "error") return LogSeverity::kError;
  return absl::InvalidArgumentError(
      absl::StrCat("--log_severity=", severity,
                   ": expected \"info\", \"warning\" or \"error\""));
}

}  // namespace

std::vector<FlagTopic> TaskFlags(FlagUsers users) {
  std::vector<FlagTopic> topics;
  for (const TaskFlag& flag : kTaskFlags) {
    if ((flag.users & BitsOf(users)) == 0) continue;
    if (topics.empty() || topics.back().title != flag.topic) {
      topics.push_back({.title = std::string(flag.topic), .flags = {}});
    }
    topics.back().flags.push_back(std::string(flag.name));
  }
  return topics;
}

std::vector<std::string> FlagsOfOtherTasks(FlagUsers users) {
  std::vector<std::string> flags;
  for (const TaskFlag& flag : kTaskFlags) {
    if ((flag.users & BitsOf(users)) == 0) {
      flags.push_back(std::string(flag.name));
    }
  }
  return flags;
}

absl::StatusOr<TaskOptions> ResolveTaskOptions(const CommandLine& line) {
  TaskOptions options;
  ASSIGN_OR_RETURN(options.config, ResolveClusterConfig());
  options.job_file = absl::GetFlag(FLAGS_job);
  options.settings = line.settings;
  options.run_dir = absl::GetFlag(FLAGS_run_dir);
  if (const auto seed = absl::GetFlag(FLAGS_seed); seed.has_value()) {
    options.seed = *seed;
  }
  ASSIGN_OR_RETURN(options.thread_count, ResolveThreadCount());
  ASSIGN_OR_RETURN(options.gpus, ResolveGpuOptions());
  options.check_numerics = absl::GetFlag(FLAGS_check_numerics);
  ASSIGN_OR_RETURN(options.listen_address,
                   ResolveListenAddress(options.config));
  options.remote_address =
      RemoteAddress(options.config, options.listen_address);
  ASSIGN_OR_RETURN(options.tls, ResolveTls(options.config.task));
  options.insecure = absl::GetFlag(FLAGS_insecure);
  RETURN_IF_ERROR(ResolveRoots(line, &options));
  ASSIGN_OR_RETURN(
      options.startup_timeout,
      Positive("startup_timeout", absl::GetFlag(FLAGS_startup_timeout)));
  ASSIGN_OR_RETURN(options.on_coordinator_loss, ResolveOnCoordinatorLoss());
  ASSIGN_OR_RETURN(options.coordinator_timeout,
                   Positive("coordinator_timeout",
                            absl::GetFlag(FLAGS_coordinator_timeout)));
  options.server_return_timeout = absl::GetFlag(FLAGS_server_return_timeout);
  options.recovery_count_max = absl::GetFlag(FLAGS_max_recoveries);
  options.shared_memory = absl::GetFlag(FLAGS_shared_memory);
  options.raw_sockets = absl::GetFlag(FLAGS_raw_sockets);
  options.local_connections = absl::GetFlag(FLAGS_local_connections);
  ASSIGN_OR_RETURN(options.peer_timeout,
                   Positive("peer_timeout", absl::GetFlag(FLAGS_peer_timeout)));
  ASSIGN_OR_RETURN(options.hang_report_interval,
                   Positive("hang_report_interval",
                            absl::GetFlag(FLAGS_hang_report_interval)));
  ASSIGN_OR_RETURN(
      options.evaluator_timeout,
      Positive("evaluator_timeout", absl::GetFlag(FLAGS_evaluator_timeout)));
  ASSIGN_OR_RETURN(options.status, ResolveStatusPages(options.job_file));
  ASSIGN_OR_RETURN(
      options.control_port,
      ResolvePort("control_port", absl::GetFlag(FLAGS_control_port)));
  ASSIGN_OR_RETURN(options.lane_port, ResolveLanePort(options));
  options.trace_file = absl::GetFlag(FLAGS_trace);
  ASSIGN_OR_RETURN(options.log_format, ResolveLogFormat());
  ASSIGN_OR_RETURN(options.log_severity, ResolveLogSeverity());
  ASSIGN_OR_RETURN(options.grace_period,
                   Positive("grace_period", absl::GetFlag(FLAGS_grace_period)));
  options.arguments = line.arguments;
  return options;
}

bool CheckConfigWanted() { return absl::GetFlag(FLAGS_check_config); }

}  // namespace muster
