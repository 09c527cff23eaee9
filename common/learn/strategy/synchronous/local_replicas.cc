#include "common/learn/strategy/synchronous/local_replicas.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/clock.h"
#include "common/core/base/status_macros.h"
#include "common/learn/strategy/synchronous/cross_device_communicator.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/device_communicator.h"
#include "common/net/collectives/nccl/local_nccl_group.h"
#include "common/net/collectives/nccl/nccl_api.h"
#include "common/net/collectives/nccl/real_nccl.h"
#include "common/net/collectives/shm/shared_memory_group.h"
#include "common/net/collectives/transports/transport_choice.h"
#include "common/net/collectives/transports/transports.h"
#include "proto/peer_group.pb.h"

namespace muster {
namespace {

using Communicators = std::vector<std::unique_ptr<Communicator>>;

constexpr absl::Duration kConnectTimeout = absl::Minutes(1);

absl::StatusOr<Communicators> ConnectOverNccl(const TransportSettings& settings,
                                              uint64_t generation) {
  const nccl::Api* api = settings.nccl;
  if (api == nullptr) {
    ASSIGN_OR_RETURN(api, RealNccl());
  }
  ASSIGN_OR_RETURN(auto connected, CreateLocalNcclGroup(
                                       api, settings.devices, generation,
                                       Clock::Real()->Now() + kConnectTimeout));
  Communicators communicators;
  for (std::unique_ptr<DeviceCommunicator>& communicator : connected) {
    communicators.push_back(std::move(communicator));
  }
  return communicators;
}

absl::Status CheckNccl(const TransportSettings& settings, int replica_count) {
  const TransportChoice choice =
      ChooseTransport(CommunicationImplementation::kNccl,
                      {OfferTransports(settings)}, replica_count);
  if (choice.transport != nullptr) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat(choice.reason, "; use RING or AUTO"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ReplicaGroup>> MakeLocalReplicas(
    int replica_count, const LocalCommunication& communication) {
  if (communication.implementation == CommunicationImplementation::kNccl) {
    RETURN_IF_ERROR(CheckNccl(communication.transports, replica_count));
  }
  auto make = [replica_count, communication, generation = uint64_t{0}]() mutable
      -> absl::StatusOr<ReplicaGroup::Communicators> {
    ++generation;
    ASSIGN_OR_RETURN(
        Communicators made,
        communication.implementation == CommunicationImplementation::kNccl
            ? ConnectOverNccl(communication.transports, generation)
            : CreateLocalGroup(replica_count, {.generation = generation}));
    if (communication.ops != nullptr) {
      made = ReduceBy(communication.ops, std::move(made));
    }
    ReplicaGroup::Communicators communicators;
    for (std::unique_ptr<Communicator>& communicator : made) {
      communicators.push_back(std::move(communicator));
    }
    return communicators;
  };
  ASSIGN_OR_RETURN(ReplicaGroup::Communicators communicators, make());
  return ReplicaGroup::Create(std::move(communicators),
                              {.renew = std::move(make)});
}

}  // namespace muster
