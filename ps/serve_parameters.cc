#include "ps/serve_parameters.h"

#include <cstdint>
#include <memory>

#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/core/system/log_format.h"
#include "common/net/cluster/coordinator_wait.h"
#include "common/net/process/exit_code.h"
#include "common/net/process/host_process.h"
#include "common/net/process/shutdown_signals.h"
#include "common/net/process/status_service.h"
#include "common/net/status/http_server.h"
#include "ps/parameter_server.h"
#include "ps/parameter_service.h"

namespace muster {
namespace {

// With --server_log=auto. Logging as much takes less than a tenth of the time.
constexpr int64_t kLoggedBytesPerSecondMax = int64_t{64} << 20;

// True if another process may continue with the state of this server: it was
// stopped alone, and the job goes on.
bool IsStateNeeded(const ParameterService::Outcome& outcome) {
  return outcome.end == ParameterService::End::kStopped &&
         !outcome.has_job_ended;
}

absl::Status AwaitEnd(const TaskOptions& options, ParameterServer* server,
                      ShutdownSignals* signals,
                      ParameterService::Outcome* last_outcome) {
  const bool waits_for_next =
      options.on_coordinator_loss == OnCoordinatorLoss::kWait;
  while (true) {
    const ParameterService::Outcome outcome = server->AwaitEnd();
    *last_outcome = outcome;
    switch (outcome.end) {
      case ParameterService::End::kJobEnd: {
        const absl::Status status =
            JobEndStatus(outcome.exit_code, outcome.reason);
        if (status.ok()) LOG(INFO) << "the job has ended";
        if (ExitCodeOf(status) != ExitCode::kRestartMe || !waits_for_next) {
          return status;
        }
        LOG(WARNING) << status.message() << "; waiting for another coordinator";
        server->service().Reset();
        break;
      }
      case ParameterService::End::kDisagreement:
        return WithExitCode(outcome.why, ExitCode::kUsage);
      case ParameterService::End::kStopped:
        return WithExitCode(absl::CancelledError("stopped by a signal"),
                            static_cast<ExitCode>(signals->exit_code()));
      case ParameterService::End::kCoordinatorLost:
        if (!waits_for_next) {
          return WithExitCode(outcome.why, ExitCode::kRestartMe);
        }
        LOG(WARNING) << outcome.why.message()
                     << "; dropped its job and waiting for another coordinator";
        server->service().Reset();
        break;
      // Requests name the process that they are meant for, so only another
      // process can have another state.
      case ParameterService::End::kReplaced:
      case ParameterService::End::kNoCoordinator:
        return WithExitCode(outcome.why, ExitCode::kRestartMe);
    }
  }
}

}  // namespace

absl::Status ServeParameters(const TaskOptions& options,
                             const TaskIdentity& identity, Network* network) {
  ShutdownSignals signals({.grace_period = options.grace_period});
  ParameterServer::Options server_options;
  server_options.self = identity;
  server_options.address = options.listen_address;
  server_options.shard.thread_count = options.thread_count;
  server_options.shared_memory = options.shared_memory;
  server_options.checkpoints.roots.folders = options.checkpoint_roots;
  if (const std::string folder = ServerLogDir(options); !folder.empty()) {
    server_options.log = LogKeeper::Options{
        .folder = folder,
        .size_bytes_max = options.server_log_bytes_max,
        .bytes_per_second_max = options.server_log == ServerLogMode::kAuto
                                    ? kLoggedBytesPerSecondMax
                                    : 0,
        .boot_id = ThisProcess().boot_id};
  }
  server_options.cluster = options.config.cluster;
  server_options.coordinator = {
      .coordinator = DescribeCoordinator(options.config.cluster),
      .timeout = options.startup_timeout};
  server_options.coordinator_grace = options.coordinator_timeout;
  ASSIGN_OR_RETURN(const std::unique_ptr<ParameterServer> server,
                   ParameterServer::Start(network, server_options));
  WriteLogLine(LogSeverity::kInfo,
               StartLine({.config = options.config,
                          .address = server->address(),
                          .incarnation = identity.incarnation,
                          .seed = options.seed}));
  ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> pages,
                   ServeStatusPages(options, identity));
  signals.SetHandler([&server](int) { server->BeginEnd(); });
  ParameterService::Outcome outcome;
  const absl::Status status =
      AwaitEnd(options, server.get(), &signals, &outcome);
  signals.SetHandler(nullptr);
  server->Shutdown();
  if (!IsStateNeeded(outcome)) server->service().EndLog();
  return status;
}

}  // namespace muster
