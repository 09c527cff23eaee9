#ifndef TESTS_SIMULATION_NETWORK_SIMULATED_SERVER_H_
#define TESTS_SIMULATION_NETWORK_SIMULATED_SERVER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/network.h"
#include "common/net/rpc/service.h"
#include "tests/simulation/network/simulated_transport.h"

namespace muster::sim {

// Network::Listen() over `transport`, which is borrowed. Checks calls in the
// order of grpc_server.cc.
absl::StatusOr<std::unique_ptr<Server>> StartSimulatedServer(
    SimulatedTransport* transport, const ServerOptions& options,
    const Service* service, AdmissionCheck* admission_check);

}  // namespace muster::sim

#endif  // TESTS_SIMULATION_NETWORK_SIMULATED_SERVER_H_
