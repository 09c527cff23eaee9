#ifndef COMMON_NET_COLLECTIVES_TRANSPORTS_SHARED_MEMORY_TRANSPORT_H_
#define COMMON_NET_COLLECTIVES_TRANSPORTS_SHARED_MEMORY_TRANSPORT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/net/collectives/transports/transport.h"

namespace muster {

// Ranks of one host, up to kSharedMemoryRanksMax. See shm/.
class SharedMemoryTransport final : public Transport {
 public:
  std::string name() const override { return "shared memory"; }
  bool leaves_processor_idle() const override { return false; }
  void Offer(const TransportSettings& settings,
             proto::TransportOffer* offer) const override;
  TransportFit Fit(absl::Span<const RankOffer> offers) const override;
  absl::StatusOr<std::unique_ptr<TransportEndpoint>> Prepare(
      const TransportContext& context, const GroupPlan& plan,
      TransportRanks ranks, proto::ReplicaEndpoint* endpoint) const override;
};

inline constexpr SharedMemoryTransport kSharedMemoryTransport;

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_TRANSPORTS_SHARED_MEMORY_TRANSPORT_H_
