#ifndef PS_PARAMETER_SERVER_H_
#define PS_PARAMETER_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/coordinator_wait.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/network.h"
#include "ps/checkpoint_handler.h"
#include "ps/parameter_service.h"
#include "ps/parameter_shard.h"

namespace muster {

// A whole parameter server, as main() and in-process clusters start it.
//
// Thread-safe.
class ParameterServer {
 public:
  struct Options {
    TaskIdentity self;
    std::string address;  // "host:port"; port 0 takes a free one.
    // No memory limit stands for nine tenths of the machine's.
    ParameterShard::Options shard;
    // Whether tensors may go through memory that clients of this host share.
    bool shared_memory = true;
    // Where checkpoints may be written and read.
    CheckpointHandler::Options checkpoints;
    // A coordinator whose cluster disagrees is refused; an empty one agrees
    // with all.
    ClusterSpec cluster;
    // The wait for a coordinator.
    CoordinatorWait::Options coordinator;
    // Within which a coordinator that broke off is not yet lost.
    absl::Duration coordinator_grace;
  };

  // Listens from now on. `network` is borrowed.
  //   as Network::Listen()
  static absl::StatusOr<std::unique_ptr<ParameterServer>> Start(
      Network* network, const Options& options);

  ~ParameterServer();

  std::string address() const { return server_->address(); }
  uint64_t incarnation() const {
    return service_.admission_check().self().incarnation;
  }

  ParameterService& service() { return service_; }

  // Serves until there is reason to stop. After the loss of a coordinator, or
  // an end that asks for a restart, the server still listens: after
  // service().Reset() another coordinator may come. Otherwise as Shutdown().
  ParameterService::Outcome AwaitEnd();

  // Listens no longer, and lets answers under way go out. May be called twice.
  void Shutdown();

  // Make AwaitEnd() return: at once, or when what this server holds is saved.
  // For signal handling threads.
  void Stop() { service_.Stop(); }
  void BeginEnd() { service_.BeginEnd(); }

 private:
  explicit ParameterServer(const Options& options);

  const Options options_;
  ParameterService service_;
  std::unique_ptr<Server> server_;
};

// Start() and AwaitEnd(): all that a main() has to call.
absl::StatusOr<ParameterService::Outcome> RunParameterServer(
    Network* network, const ParameterServer::Options& options);

}  // namespace muster

#endif  // PS_PARAMETER_SERVER_H_
