#include "worker/serve_worker.h"

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/runtime/process_devices.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/device.h"
#include "common/core/system/clock.h"
#include "common/core/system/confined_files.h"
#include "common/core/system/log.h"
#include "common/core/system/log_format.h"
#include "common/core/system/wait_line.h"
#include "common/net/cluster/coordinator_wait.h"
#include "common/net/process/exit_code.h"
#include "common/net/process/shutdown_signals.h"
#include "common/net/process/status_service.h"
#include "common/net/rpc/service.h"
#include "common/net/status/http_server.h"
#include "worker/remote_session_variables.h"
#include "worker/worker_service.h"

namespace muster {
namespace {

// Lets the last messages of a session be sent.
constexpr absl::Duration kServerGrace = absl::Seconds(1);

absl::Status AwaitEnd(const TaskOptions& options, WorkerService* worker,
                      ShutdownSignals* signals) {
  const bool waits_for_next =
      options.on_coordinator_loss == OnCoordinatorLoss::kWait;
  while (true) {
    WaitLine wait;
    const absl::StatusOr<WorkerService::JobEnd> end = worker->AwaitJobEnd(
        {.coordinator = {.coordinator =
                             DescribeCoordinator(options.config.cluster),
                         .timeout = options.startup_timeout},
         .exit_when_coordinator_lost = !waits_for_next},
        [&wait](absl::string_view line) { LOG(INFO) << wait << line; });
    if (signals->signal() != 0) {
      return WithExitCode(absl::CancelledError("stopped by a signal"),
                          static_cast<ExitCode>(signals->exit_code()));
    }
    RETURN_IF_ERROR(end.status());
    const absl::Status status = JobEndStatus(end->exit_code, end->reason);
    if (status.ok()) {
      LOG(INFO) << (end->reason.empty() ? "the job has ended" : end->reason);
    }
    if (ExitCodeOf(status) != ExitCode::kRestartMe || !waits_for_next) {
      return status;
    }
    LOG(WARNING) << status.message() << "; waiting for another coordinator";
    worker->AcceptNextJob();
  }
}

}  // namespace

absl::Status ServeWorker(const TaskOptions& options,
                         const TaskIdentity& identity, Network* network) {
  if (options.data_roots.has_value()) ConfineReads(*options.data_roots);
  ShutdownSignals signals({.grace_period = options.grace_period});
  AdmissionCheck admission_check(identity);
  const ClusterSpec& cluster = options.config.cluster;
  ASSIGN_OR_RETURN(Device* const device, FindDefaultDevice());
  if (device != nullptr) {
    LOG(INFO) << "closures run on " << device->description().ToString();
  }
  WorkerService worker(
      {.self = identity,
       .admission_check = &admission_check,
       .cluster = cluster,
       .executable = {.intra_op_thread_count = options.thread_count,
                      .device = device,
                      .host_kernels = &KernelsOf(nullptr)},
       .coordinator_grace = options.coordinator_timeout,
       .shared_memory = options.shared_memory},
      &BuiltinOps(), &KernelsOf(device),
      [&](const TaskIdentity& self, const SessionJob& job) {
        return std::make_unique<RemoteSessionVariables>(
            network, cluster, self, job, options.shared_memory);
      },
      Clock::Real());
  Service methods;
  worker.AddTo(&methods);
  ASSIGN_OR_RETURN(const std::unique_ptr<Server> server,
                   network->Listen({.address = options.listen_address},
                                   &methods, &admission_check));
  WriteLogLine(LogSeverity::kInfo,
               StartLine({.config = options.config,
                          .address = server->address(),
                          .incarnation = identity.incarnation,
                          .seed = options.seed}));
  ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> pages,
                   ServeStatusPages(options, identity));
  signals.SetHandler([&worker](int) { worker.Stop(); });
  const absl::Status status = AwaitEnd(options, &worker, &signals);
  signals.SetHandler(nullptr);
  worker.EndShares();
  server->Shutdown(kServerGrace);
  return status;
}

}  // namespace muster
