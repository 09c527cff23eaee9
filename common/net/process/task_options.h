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
#include "common/net/process/command_line.h"
#include "common/net/process/gpu_options.h"
#include "common/net/process/task_flags.h"
#include "common/net/rpc/tls_context.h"

namespace muster {

// The action of workers and parameter servers when their coordinator is gone.
enum class OnCoordinatorLoss {
  kExit,  // End with ExitCode::kRestartMe.
  kWait,  // Drop the job and wait for a new coordinator.
};

// All that a task is told from outside.
struct TaskOptions {
  ClusterConfig config;  // Checked.

  std::string job_file;  // --job; empty if none.
  // --set name=value, and the defaults of declared settings.
  std::map<std::string, std::string> settings;

  // Where the run writes; empty until the program chooses.
  std::string run_dir;
  // The folder is removed afterwards: what is in it need not be named.
  bool has_temporary_run_dir = false;

  std::optional<uint64_t> seed;
  int thread_count = 1;  // At least 1.
  GpuOptions gpus;
  bool check_numerics = false;  // As EnableCheckNumerics().

  // Where to listen, "host:port"; empty for a task that is not dialled.
  std::string listen_address;

  // An address of the cluster, or to listen on, that other machines can reach;
  // empty for a task that talks to its own machine only, or to no task.
  std::string remote_address;
  TlsFiles tls;           // Empty: plaintext.
  bool insecure = false;  // Plaintext may cross the network.

  // Within which all peers must be there.
  absl::Duration startup_timeout;
  OnCoordinatorLoss on_coordinator_loss = OnCoordinatorLoss::kExit;
  // A coordinator silent for this long is gone.
  absl::Duration coordinator_timeout;

  // Absolute folders, and URLs, in which a parameter server writes and reads
  // checkpoints when it is asked to.
  std::vector<std::string> checkpoint_roots;
  // Absolute folders below which a worker opens the files that its
  // coordinator's input pipelines name; all files if absent.
  std::optional<std::vector<std::string>> data_roots;
  // How long a coordinator waits for a lost parameter server to come back; zero
  // for not at all.
  absl::Duration server_return_timeout = absl::Seconds(60);
  int recovery_count_max = 100;

  // How tensors get from task to task, where both ends allow it; gRPC is what
  // is left.
  bool shared_memory = true;
  bool raw_sockets = true;  // Workers of synchronous training only.
  // With TLS, gRPC between tasks of one host and user over Unix sockets.
  bool local_connections = true;
  int lane_port = 0;  // Where raw sockets listen; 0: at free ports.
  // A worker silent for this long is gone.
  absl::Duration peer_timeout = absl::Seconds(3);
  // A collective that takes longer is reported, with the tasks that have not
  // arrived.
  absl::Duration hang_report_interval = absl::Seconds(30);

  // How long an evaluator waits for a checkpoint or the end of training.
  absl::Duration evaluator_timeout = absl::Hours(7 * 24);

  // The status pages.
  struct StatusPages {
    std::optional<int> port;  // Unset: none are served. 0: a free port.
    std::string host;         // "localhost", or an IP address.
    std::string token_file;   // Empty: no token.
    std::string job_label;    // Of metrics; empty for none.
  };
  StatusPages status;

  // Where operators send requests to the task that leads the job; unset:
  // nowhere. 0: a free port.
  std::optional<int> control_port;

  // Where the task that leads the job writes a trace of it; empty: nowhere.
  std::string trace_file;

  LogFormat log_format = LogFormat::kText;
  LogSeverity log_severity = LogSeverity::kInfo;

  // For an orderly end after SIGTERM.
  absl::Duration grace_period;

  // Arguments that are no flags.
  std::vector<std::string> arguments;
};

// Returns the options of the flags set by ParseArguments(), and the cluster as
// ResolveCluster() finds it in the flags and the environment.
//
//   kInvalidArgument   the cluster is invalid, or a flag is out of range
absl::StatusOr<TaskOptions> ResolveTaskOptions(const CommandLine& line);

// --check_config: only check and print the resulting configuration.
bool CheckConfigWanted();

// --check_data: --check_config looks at the data and folders of the job, too.
bool CheckDataWanted();

}  // namespace muster

#endif  // COMMON_NET_PROCESS_TASK_OPTIONS_H_
