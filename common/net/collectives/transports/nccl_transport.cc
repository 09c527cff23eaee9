#include "common/net/collectives/transports/nccl_transport.h"

#include <cstring>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/device.h"
#include "common/net/collectives/device_communicator.h"
#include "common/net/collectives/nccl/local_nccl_group.h"
#include "common/net/collectives/nccl/nccl_api.h"
#include "common/net/collectives/nccl/nccl_communicator.h"
#include "common/net/collectives/nccl/real_nccl.h"
#include "proto/peer_group.pb.h"

namespace muster {
namespace {

absl::StatusOr<const nccl::Api*> FindNccl(const TransportSettings& settings) {
  if (settings.nccl != nullptr) return settings.nccl;
  return RealNccl();
}

// Returns null for a replica on a CPU.
Device* DeviceOf(const TransportSettings& settings, int replica) {
  return replica < static_cast<int>(settings.devices.size())
             ? settings.devices[replica]
             : nullptr;
}

// Returns the library if it supports `device`.
absl::StatusOr<const nccl::Api*> FindNcclFor(const TransportSettings& settings,
                                             const Device& device) {
  ASSIGN_OR_RETURN(const nccl::Api* const api, FindNccl(settings));
  if (api->is_simulated != device.description().is_simulated) {
    return absl::UnavailableError(absl::StrCat(
        device.name(), " is a simulated GPU, and NCCL works on real ones"));
  }
  return api;
}

class NcclEndpoint final : public TransportEndpoint {
 public:
  NcclEndpoint(const nccl::Api* api, Device* device, int first_rank,
               std::unique_ptr<TransportEndpoint> control)
      : api_(api),
        device_(device),
        first_rank_(first_rank),
        control_(std::move(control)) {}

  absl::StatusOr<std::unique_ptr<Communicator>> Connect(
      absl::Span<const proto::ReplicaEndpoint> endpoints,
      absl::Time deadline) override {
    NcclGroup group;
    group.device = device_;
    const std::string& id = endpoints[first_rank_].nccl_id();
    if (id.size() != sizeof(group.id.bytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", first_rank_, " sent an NCCL id of ", id.size(),
                       " bytes; expected ", sizeof(group.id.bytes)));
    }
    std::memcpy(group.id.bytes, id.data(), id.size());
    ASSIGN_OR_RETURN(group.control, control_->Connect(endpoints, deadline));
    return ConnectNccl(api_, std::move(group), deadline);
  }

 private:
  const nccl::Api* const api_;
  Device* const device_;
  const int first_rank_;
  const std::unique_ptr<TransportEndpoint> control_;
};

}  // namespace

void NcclTransport::Offer(const TransportSettings& settings,
                          proto::TransportOffer* offer) const {
  for (const Device* const device : settings.devices) {
    proto::TransportOffer::Gpu* const gpu = offer->add_gpus();
    if (device == nullptr) continue;
    gpu->set_uuid(device->description().uuid);
    const absl::StatusOr<const nccl::Api*> api = FindNcclFor(settings, *device);
    if (api.ok()) {
      offer->set_nccl_version((*api)->version);
    } else {
      offer->set_nccl_is_missing(std::string(api.status().message()));
    }
  }
}

TransportFit NcclTransport::Fit(absl::Span<const RankOffer> offers) const {
  // The rank that has each GPU. The host is part of the key, because simulated
  // GPUs of two hosts have the same names.
  std::map<std::pair<std::string, std::string>, int> owners;
  for (const RankOffer& from : offers) {
    const proto::TransportOffer& offer = *from.offer;
    if (from.replica >= offer.gpus_size() ||
        offer.gpus(from.replica).uuid().empty()) {
      return {false, absl::StrCat("it needs a GPU for every replica, and rank ",
                                  from.rank, " computes on a CPU")};
    }
    if (offer.nccl_version() == 0) {
      return {false,
              absl::StrCat("rank ", from.rank, ": ", offer.nccl_is_missing())};
    }
    const int version = offers[0].offer->nccl_version();
    if (offer.nccl_version() != version) {
      return {false, absl::StrCat("rank ", offers[0].rank, " has NCCL ",
                                  nccl::VersionString(version), ", and rank ",
                                  from.rank, " has NCCL ",
                                  nccl::VersionString(offer.nccl_version()),
                                  "; install one version everywhere")};
    }
    const std::string& uuid = offer.gpus(from.replica).uuid();
    const auto [owner, is_new] =
        owners.try_emplace({offer.host(), uuid}, from.rank);
    if (!is_new) {
      return {false, absl::StrCat("ranks ", owner->second, " and ", from.rank,
                                  " share ", uuid,
                                  ", and NCCL needs a GPU for each rank")};
    }
  }
  return {true,
          absl::StrCat("every rank has a GPU of its own and NCCL ",
                       nccl::VersionString(offers[0].offer->nccl_version()))};
}

absl::StatusOr<std::unique_ptr<TransportEndpoint>> NcclTransport::Prepare(
    const TransportContext& context, const GroupPlan& plan,
    TransportRanks ranks, proto::ReplicaEndpoint* endpoint) const {
  Device* const device = DeviceOf(
      context.settings, ranks.self - plan.self * plan.replicas_per_task);
  if (device == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("NCCL needs a GPU for every replica, and rank ",
                     ranks.self, " computes on a CPU"));
  }
  ASSIGN_OR_RETURN(const nccl::Api* const api,
                   FindNcclFor(context.settings, *device));
  const int first_rank = ranks.ranks.front();
  if (ranks.self == first_rank) {
    ASSIGN_OR_RETURN(const nccl::UniqueId id, GenerateNcclId(*api));
    endpoint->set_nccl_id(id.bytes, sizeof(id.bytes));
  }
  ASSIGN_OR_RETURN(
      std::unique_ptr<TransportEndpoint> control,
      control_->Prepare(context, plan, std::move(ranks), endpoint));
  return std::make_unique<NcclEndpoint>(api, device, first_rank,
                                        std::move(control));
}

}  // namespace muster
