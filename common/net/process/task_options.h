#ifndef COMMON_NET_PROCESS_TASK_OPTIONS_H_
#define COMMON_NET_PROCESS_TASK_OPTIONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/core/system/log.h"
#include "common/core/system/log_format.h"
#include "common/net/cluster/cluster_config.h"
#include "common/net/cluster/coordinator_wait.h"
#include "common/net/process/command_line.h"
#include "common/net/process/gpu_options.h"
#include "common/net/process/task_flags.h"
#include "common/net/rpc/tls_context.h"

namespace muster {

// The action of workers and parameter servers when their coordinator is lost.
enum class OnCoordinatorLoss {
  kExit,  // End with ExitCode::kRestartMe.
  kWait,  // Drop the job and wait for a new coordinator.
};

// Whether a parameter server logs its updates; kAuto up to a number of bytes
// in a second.
enum class ServerLogMode { kOff, kAuto, kOn };

// All options of a task, from its flags and its environment.
struct TaskOptions {
  ClusterConfig config;  // Validated.

  std::string job_file;  // --job; empty if none.
  // --set name=value, and the defaults of declared settings.
  std::map<std::string, std::string> settings;

  // The folder that the run writes to; empty until the program chooses one.
  std::string run_dir;
  // True if `run_dir` is removed after the run, so that messages need not name
  // the files in it.
  bool has_temporary_run_dir = false;

  std::optional<uint64_t> seed;
  int thread_count = 1;  // At least 1.
  GpuOptions gpus;
  bool check_numerics = false;  // As EnableCheckNumerics().

  // Where to listen, "host:port"; empty if no task connects to this one.
  std::string listen_address;

  // An address of the cluster, or to listen on, that other machines can reach;
  // empty for a task that communicates only within its machine, or with no
  // other task.
  std::string remote_address;
  TlsFiles tls;           // Empty: plaintext.
  bool insecure = false;  // Allows plaintext between machines.

  // Time limit for all peers to connect at the start.
  absl::Duration startup_timeout;
  OnCoordinatorLoss on_coordinator_loss = OnCoordinatorLoss::kExit;
  // A coordinator that is silent for this long is considered lost.
  CoordinatorGrace coordinator_timeout;

  // Absolute folders, and URLs, in which a parameter server writes and reads
  // checkpoints at the coordinator's request.
  std::vector<std::string> checkpoint_roots;
  // Absolute folders below which a worker opens the files that its
  // coordinator's input pipelines name; all files if absent.
  std::optional<std::vector<std::string>> data_roots;
  // How long a coordinator waits for a lost parameter server to reconnect; 0
  // not to wait.
  absl::Duration server_return_timeout = absl::Seconds(60);
  int recovery_count_max = 100;
  // How long servers and workers wait for a coordinator that is started again;
  // 0 if its loss ends the job.
  absl::Duration coordinator_return_timeout = absl::Minutes(2);

  // True if this process leads the job only once no other process does.
  bool stands_by = false;
  // As RunLease::Options::stale_lease, once it has stood by.
  std::string stale_lease;

  // The log of a parameter server, if it has a run_dir for it.
  ServerLogMode server_log = ServerLogMode::kAuto;
  int64_t server_log_bytes_max = int64_t{1} << 30;

  // Transports for tensors, used if both ends allow them. Otherwise tensors are
  // sent over gRPC.
  bool shared_memory = true;
  bool raw_sockets = true;  // Workers of synchronous training only.
  // With TLS: gRPC between tasks on one host that run as one user uses Unix
  // sockets.
  bool local_connections = true;
  int lane_port = 0;  // The first port of raw sockets; 0: free ports.
  // A worker that is silent for this long is considered lost.
  absl::Duration peer_timeout = absl::Seconds(3);
  // The smallest number of synchronous workers that continue after others are
  // lost; 0: the loss of a worker ends all.
  int min_workers = 0;
  // A collective that takes longer is reported, with the tasks that have not
  // arrived.
  absl::Duration hang_report_interval = absl::Seconds(30);

  // How long an evaluator waits for a checkpoint or the end of training.
  absl::Duration evaluator_timeout = absl::Hours(7 * 24);

  // The status pages.
  struct StatusPages {
    std::optional<int> port;  // Unset: no pages are served. 0: a free port.
    std::string host;         // "localhost", or an IP address.
    std::string token_file;   // Empty: no token.
    std::string job_label;    // The job label of metrics; empty for none.
  };
  StatusPages status;

  // The port where the task that leads the job accepts operators' requests.
  // Unset: none are accepted. 0: a free port.
  std::optional<int> control_port;

  // The file to which the task that leads the job writes a trace; empty for no
  // trace.
  std::string trace_file;

  LogFormat log_format = LogFormat::kText;
  LogSeverity log_severity = LogSeverity::kInfo;

  // How long an orderly shutdown may take after SIGTERM.
  absl::Duration grace_period;

  // The arguments after "--".
  std::vector<std::string> arguments;
};

// Returns the options from the flags that ParseArguments() has set, with the
// cluster from ResolveCluster().
//
//   kInvalidArgument   the cluster is invalid, or a flag is out of range
absl::StatusOr<TaskOptions> ResolveTaskOptions(const CommandLine& line);

// Returns the folder in which a coordinator records its training for a later
// coordinator of the job; empty if the options or --run_dir do not allow that.
std::string CoordinatorJournalDir(const TaskOptions& options);

// Returns the folder in which a parameter server logs its updates for a process
// that replaces it; empty if the options or --run_dir do not allow that.
std::string ServerLogDir(const TaskOptions& options);

// True with --check_config: the program only checks and prints its
// configuration.
bool CheckConfigWanted();

// True with --check_data: --check_config also checks the data and folders of
// the job.
bool CheckDataWanted();

}  // namespace muster

#endif  // COMMON_NET_PROCESS_TASK_OPTIONS_H_
