#ifndef PS_PARAMETER_SERVER_H_
#define PS_PARAMETER_SERVER_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/coordinator_wait.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/network.h"
#include "ps/checkpoint_handler.h"
#include "ps/log_keeper.h"
#include "ps/parameter_service.h"
#include "ps/parameter_shard.h"

namespace muster {

// A complete parameter server, for main() and for clusters within one process.
//
// Thread-safe.
class ParameterServer {
 public:
  struct Options {
    TaskIdentity self;
    std::string address;  // "host:port"; port 0 selects a free port.
    // A memory_bytes_max of 0 is replaced by nine tenths of the machine's
    // memory.
    ParameterShard::Options shard;
    // If true, clients of the same host may pass tensors through shared memory.
    bool shared_memory = true;
    // The folders of checkpoints, and the disk.
    CheckpointHandler::Options checkpoints;
    // The log, from which a process that replaces this one restores its state.
    // `self` is not used. Unset: none.
    std::optional<LogKeeper::Options> log;
    // A coordinator with another cluster is rejected. If empty, any is
    // accepted.
    ClusterSpec cluster;
    // How long to wait for a coordinator.
    CoordinatorWait::Options coordinator;
    // How long after its disconnection a coordinator may reconnect before it
    // counts as lost.
    CoordinatorGrace coordinator_grace;
  };

  // Starts to listen. `network` is borrowed and must outlive the server.
  //   Fails as Network::Listen() does.
  static absl::StatusOr<std::unique_ptr<ParameterServer>> Start(
      Network* network, const Options& options);

  ~ParameterServer();

  std::string address() const { return server_->address(); }
  uint64_t incarnation() const { return service_.self().incarnation; }

  ParameterService& service() { return service_; }

  // Blocks until there is a reason to stop. If the coordinator was lost, or the
  // job ended with a request to restart, the server keeps listening, and
  // another coordinator can use it after service().Reset(). In all other cases
  // the server shuts down.
  ParameterService::Outcome AwaitEnd();

  // Stops listening. Waits for pending responses. Idempotent.
  void Shutdown();

  // Both make AwaitEnd() return: Stop() immediately, BeginEnd() after the
  // coordinator has saved the variables of this server. The thread that handles
  // signals calls them.
  void Stop() { service_.Stop(); }
  void BeginEnd() { service_.BeginEnd(); }

 private:
  ParameterServer(Network* network, const Options& options);

  const Options options_;
  ParameterService service_;
  std::unique_ptr<Server> server_;
};

}  // namespace muster

#endif  // PS_PARAMETER_SERVER_H_
