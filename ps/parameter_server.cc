#include "ps/parameter_server.h"

#include "common/core/base/status_macros.h"
#include "common/core/system/memory_limits.h"
#include "common/net/process/exit_code.h"

namespace muster {
namespace {

constexpr absl::Duration kShutdownGrace = absl::Seconds(2);

// Makes the server reject a variable that exceeds the available memory when it
// is created, instead of being killed by the kernel later.
ParameterShard::Options WithMemoryLimit(ParameterShard::Options options) {
  if (options.memory_bytes_max == 0) {
    options.memory_bytes_max = AvailableMemoryBytes() / 10 * 9;
  }
  return options;
}

std::optional<LogKeeper::Options> LogOptions(
    const ParameterServer::Options& options) {
  std::optional<LogKeeper::Options> log = options.log;
  if (log.has_value()) log->self = options.self;
  return log;
}

}  // namespace

ParameterServer::ParameterServer(Network* network, const Options& options)
    : options_(options),
      service_(options.self, WithMemoryLimit(options.shard), options.cluster,
               {.is_enabled = options.shared_memory}, options.checkpoints,
               LogOptions(options), network) {}

ParameterServer::~ParameterServer() {
  if (server_ != nullptr) server_->Shutdown(absl::ZeroDuration());
}

absl::StatusOr<std::unique_ptr<ParameterServer>> ParameterServer::Start(
    Network* network, const Options& options) {
  std::unique_ptr<ParameterServer> server(
      new ParameterServer(network, options));
  ServerOptions server_options;
  server_options.address = options.address;
  server_options.probes_bandwidth = true;
  ASSIGN_OR_RETURN(server->server_,
                   network->Listen(server_options, &server->service_.service(),
                                   &server->service_.admission_check()));
  return server;
}

ParameterService::Outcome ParameterServer::AwaitEnd() {
  const ParameterService::Outcome outcome =
      service_.AwaitEnd(options_.coordinator, options_.coordinator_grace);
  const bool may_serve_on =
      outcome.end == ParameterService::End::kCoordinatorLost ||
      (outcome.end == ParameterService::End::kJobEnd &&
       outcome.exit_code == static_cast<int>(ExitCode::kRestartMe));
  if (!may_serve_on) Shutdown();
  return outcome;
}

void ParameterServer::Shutdown() {
  // Clients keep these streams open, and Shutdown() would wait for them.
  service_.segments().End();
  service_.EndCopies();
  server_->Shutdown(kShutdownGrace);
}

}  // namespace muster
