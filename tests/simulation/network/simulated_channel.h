#ifndef TESTS_SIMULATION_NETWORK_SIMULATED_CHANNEL_H_
#define TESTS_SIMULATION_NETWORK_SIMULATED_CHANNEL_H_

#include <memory>

#include "common/net/rpc/channel.h"
#include "common/net/rpc/network.h"
#include "tests/simulation/network/simulated_transport.h"

namespace muster::sim {

// Network::Connect() over `transport`, which is borrowed, from the host of the
// calling thread. One call in `duplicate_one_in` arrives twice; 0: none.
std::unique_ptr<Channel> MakeSimulatedChannel(SimulatedTransport* transport,
                                              const ChannelOptions& options,
                                              int duplicate_one_in);

}  // namespace muster::sim

#endif  // TESTS_SIMULATION_NETWORK_SIMULATED_CHANNEL_H_
