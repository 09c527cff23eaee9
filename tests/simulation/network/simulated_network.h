#ifndef TESTS_SIMULATION_NETWORK_SIMULATED_NETWORK_H_
#define TESTS_SIMULATION_NETWORK_SIMULATED_NETWORK_H_

#include <cstdint>
#include <memory>

#include "common/net/rpc/network.h"
#include "tests/simulation/network/simulated_transport.h"

namespace muster::sim {

struct SimulatedNetworkOptions {
  TransportOptions transport;
  // One unary call in so many arrives twice; 0: none.
  int duplicate_one_in = 0;
};

// The network of all simulated hosts. A server belongs to the host of the
// thread that calls Listen(), and a channel to that of the thread that calls
// Connect(). Every message is encoded, sent and decoded.
//
// Thread-safe.
class SimulatedNetwork final : public Network {
 public:
  SimulatedNetwork(Scheduler* scheduler, const SimulatedNetworkOptions& options)
      : options_(options), transport_(scheduler, options.transport) {}

  absl::StatusOr<std::unique_ptr<Server>> Listen(
      const ServerOptions& options, const Service* service,
      AdmissionCheck* admission_check) override;
  std::unique_ptr<Channel> Connect(const ChannelOptions& options) override;

  // Machines and faults.
  SimulatedTransport& transport() { return transport_; }
  // How many calls servers have refused because they had arrived before.
  int64_t repeated_call_count() const {
    return transport_.repeated_call_count();
  }

 private:
  const SimulatedNetworkOptions options_;
  SimulatedTransport transport_;
};

}  // namespace muster::sim

#endif  // TESTS_SIMULATION_NETWORK_SIMULATED_NETWORK_H_
