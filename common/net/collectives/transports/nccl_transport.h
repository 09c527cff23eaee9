#ifndef COMMON_NET_COLLECTIVES_TRANSPORTS_NCCL_TRANSPORT_H_
#define COMMON_NET_COLLECTIVES_TRANSPORTS_NCCL_TRANSPORT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/net/collectives/communication_implementation.h"
#include "common/net/collectives/transports/transport.h"

namespace muster {

// NVIDIA's NCCL, where each replica has a GPU of its own. Another transport
// connects the same ranks, over which they agree. See nccl/nccl_communicator.h.
class NcclTransport final : public Transport {
 public:
  // `control` is borrowed, and fits every group.
  explicit constexpr NcclTransport(const Transport* control)
      : control_(control) {}

  std::string name() const override { return "NCCL"; }
  CommunicationImplementation implementation() const override {
    return CommunicationImplementation::kNccl;
  }
  bool leaves_processor_idle() const override { return true; }
  void Offer(const TransportSettings& settings,
             proto::TransportOffer* offer) const override;
  TransportFit Fit(absl::Span<const RankOffer> offers) const override;
  // Errors are also those of LoadNccl(), and kUnavailable where NCCL draws no
  // id.
  absl::StatusOr<std::unique_ptr<TransportEndpoint>> Prepare(
      const TransportContext& context, const GroupPlan& plan,
      TransportRanks ranks, proto::ReplicaEndpoint* endpoint) const override;

 private:
  const Transport* const control_;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_TRANSPORTS_NCCL_TRANSPORT_H_
