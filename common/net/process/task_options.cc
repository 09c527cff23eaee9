#include "common/net/process/task_options.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/available_cpus.h"
#include "common/core/system/host_name.h"
#include "common/io/storage/disk.h"
#include "common/io/storage/object_url.h"
#include "common/net/cluster/address.h"
#include "common/net/cluster/cluster_resolver.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/task_flag_table.h"

#define MUSTER_DECLARE_FLAG(type, name, default_value, topic, users, passing, \
                            help)                                             \
  ABSL_DECLARE_FLAG(type, name);
MUSTER_TASK_FLAGS(MUSTER_DECLARE_FLAG);
#undef MUSTER_DECLARE_FLAG

namespace muster {
namespace {

constexpr int kThreadCountMax = 1024;

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
  sources.host_name = HostName();
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

// True if the text names a folder, or a path at which a task may create one.
bool NamesFolder(const std::string& text) {
  std::error_code error;
  const auto type = std::filesystem::status(text, error).type();
  return type == std::filesystem::file_type::directory ||
         (type == std::filesystem::file_type::not_found &&
          absl::StrContains(text, '/'));
}

// Returns the run's folder, and the folders and URLs on the command line.
std::vector<std::string> NamedFolders(const CommandLine& line) {
  std::vector<std::string> named;
  const std::string run_dir = absl::GetFlag(FLAGS_run_dir);
  if (!run_dir.empty()) named.push_back(run_dir);
  const auto add = [&named](const std::string& text) {
    if (IsObjectUrl(text) ? ParseObjectUrl(text).ok() : NamesFolder(text)) {
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
    // An evaluator does not communicate with other tasks and has no
    // certificate.
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

// Returns the first address that is not a loopback address; empty if there is
// none. Evaluators have none, because they do not communicate with other tasks.
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

absl::StatusOr<CoordinatorGrace> ResolveCoordinatorTimeout() {
  constexpr absl::Duration kDefault = absl::Seconds(10);
  const absl::optional<absl::Duration> given =
      absl::GetFlag(FLAGS_coordinator_timeout);
  ASSIGN_OR_RETURN(const absl::Duration timeout,
                   Positive("coordinator_timeout", given.value_or(kDefault)));
  return CoordinatorGrace(timeout, /*is_extensible=*/!given.has_value());
}

absl::StatusOr<absl::Duration> NotNegative(absl::string_view name,
                                           absl::Duration value) {
  if (value >= absl::ZeroDuration()) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("--", name, "=", absl::FormatDuration(value),
                   ": a duration, as in 30s or 5m, or 0"));
}

// Listens on every interface, as TensorFlow does, except in a cluster of
// localhost, which other machines have no reason to reach.
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

// Checks --lane_port against the task's other ports, which are in `options`.
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

absl::StatusOr<ServerLogMode> ResolveServerLog() {
  const std::string mode = absl::GetFlag(FLAGS_server_log);
  if (mode == "auto") return ServerLogMode::kAuto;
  if (mode == "on") return ServerLogMode::kOn;
  if (mode == "off") return ServerLogMode::kOff;
  return absl::InvalidArgumentError(absl::StrCat(
      "--server_log=", mode, ": expected \"auto\", \"on\" or \"off\""));
}

}  // namespace

absl::StatusOr<TaskOptions> ResolveTaskOptions(const CommandLine& line) {
  TaskOptions options;
  ASSIGN_OR_RETURN(options.config, ResolveClusterConfig());
  options.job_file = absl::GetFlag(FLAGS_job);
  options.settings = line.settings;
  options.run_dir = absl::GetFlag(FLAGS_run_dir);
  options.has_temporary_run_dir = absl::GetFlag(FLAGS_temporary_run_dir);
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
  ASSIGN_OR_RETURN(options.coordinator_timeout, ResolveCoordinatorTimeout());
  options.server_return_timeout = absl::GetFlag(FLAGS_server_return_timeout);
  options.recovery_count_max = absl::GetFlag(FLAGS_max_recoveries);
  options.stands_by = absl::GetFlag(FLAGS_standby);
  ASSIGN_OR_RETURN(
      options.coordinator_return_timeout,
      NotNegative("coordinator_return_timeout",
                  absl::GetFlag(FLAGS_coordinator_return_timeout)));
  ASSIGN_OR_RETURN(options.server_log, ResolveServerLog());
  options.server_log_bytes_max = absl::GetFlag(FLAGS_server_log_bytes_max);
  if (options.server_log_bytes_max < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--server_log_bytes_max=", options.server_log_bytes_max,
                     ": expected 0 or more"));
  }
  options.shared_memory = absl::GetFlag(FLAGS_shared_memory);
  options.raw_sockets = absl::GetFlag(FLAGS_raw_sockets);
  options.local_connections = absl::GetFlag(FLAGS_local_connections);
  ASSIGN_OR_RETURN(options.peer_timeout,
                   Positive("peer_timeout", absl::GetFlag(FLAGS_peer_timeout)));
  options.min_workers = absl::GetFlag(FLAGS_min_workers);
  if (options.min_workers < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--min_workers is ", options.min_workers, "; expected at least 0"));
  }
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

std::string CoordinatorJournalDir(const TaskOptions& options) {
  // Another process would not find a folder that was not named.
  const bool has_lasting_folder =
      !options.run_dir.empty() && !options.has_temporary_run_dir;
  return has_lasting_folder &&
                 options.coordinator_return_timeout > absl::ZeroDuration()
             ? JoinPath(options.run_dir, "journal")
             : "";
}

std::string ServerLogDir(const TaskOptions& options) {
  return options.server_log == ServerLogMode::kOff || options.run_dir.empty() ||
                 IsObjectUrl(options.run_dir)
             ? ""
             : JoinPath(JoinPath(options.run_dir, "server_log"),
                        absl::StrCat("ps-", options.config.task.index));
}

bool CheckConfigWanted() { return absl::GetFlag(FLAGS_check_config); }

bool CheckDataWanted() { return absl::GetFlag(FLAGS_check_data); }

}  // namespace muster
