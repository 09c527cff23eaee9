#ifndef COMMON_NET_COLLECTIVES_TRANSPORTS_NCCL_TRANSPORT_H_
#define COMMON_NET_COLLECTIVES_TRANSPORTS_NCCL_TRANSPORT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/net/collectives/communication_implementation.h"
#include "common/net/collectives/transports/transport.h"

namespace muster {

// NVIDIA's NCCL, for groups in which each replica has its own GPU. A second
// transport connects the same ranks, over which they agree on calls. See
// nccl/nccl_communicator.h.
class NcclTransport final : public Transport {
 public:
  // `control` is the second transport. It is borrowed and must fit every group.
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
  // Errors are also those of LoadNccl(), and kUnavailable if NCCL generates no
  // id.
  absl::StatusOr<std::unique_ptr<TransportEndpoint>> Prepare(
      const TransportContext& context, const GroupPlan& plan,
      TransportRanks ranks, proto::ReplicaEndpoint* endpoint) const override;

 private:
  const Transport* const control_;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_TRANSPORTS_NCCL_TRANSPORT_H_
