#include "tests/simulation/network/simulated_network.h"

#include "tests/simulation/network/simulated_channel.h"
#include "tests/simulation/network/simulated_server.h"

namespace muster::sim {

absl::StatusOr<std::unique_ptr<Server>> SimulatedNetwork::Listen(
    const ServerOptions& options, const Service* service,
    AdmissionCheck* admission_check) {
  return StartSimulatedServer(&transport_, options, service, admission_check);
}

std::unique_ptr<Channel> SimulatedNetwork::Connect(
    const ChannelOptions& options) {
  return MakeSimulatedChannel(&transport_, options, options_.duplicate_one_in);
}

}  // namespace muster::sim
