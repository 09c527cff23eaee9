#include "common/net/collectives/transports/shared_memory_transport.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/net/collectives/shm/group_options.h"
#include "common/net/collectives/shm/shared_memory_group.h"
#include "common/net/rpc/local_endpoint.h"
#include "proto/peer_group.pb.h"

namespace muster {
namespace {

class SharedMemoryEndpoint final : public TransportEndpoint {
 public:
  SharedMemoryEndpoint(const GroupPlan* plan, TransportRanks ranks,
                       std::unique_ptr<LocalEndpoint> endpoint)
      : plan_(plan), ranks_(std::move(ranks)), endpoint_(std::move(endpoint)) {}

  absl::StatusOr<std::unique_ptr<Communicator>> Connect(
      absl::Span<const proto::ReplicaEndpoint> endpoints,
      absl::Time deadline) override {
    if (endpoint_ == nullptr) {
      ASSIGN_OR_RETURN(auto alone,
                       CreateLocalGroup(1, {.generation = plan_->generation}));
      return std::move(alone[0]);
    }
    SharedMemoryGroupOptions options;
    options.rank = ranks_.IndexOf(ranks_.self);
    options.size = ranks_.size();
    options.generation = plan_->generation;
    for (const int rank : ranks_.ranks) {
      options.addresses.push_back(endpoints[rank].shared_memory());
    }
    options.token = absl::StrCat(absl::Hex(plan_->token, absl::kZeroPad16));
    options.timeout = deadline - Clock::Real()->Now();
    return ConnectSharedMemoryGroup(std::move(endpoint_), options);
  }

 private:
  const GroupPlan* const plan_;
  const TransportRanks ranks_;
  // Null if the group has one rank.
  std::unique_ptr<LocalEndpoint> endpoint_;
};

}  // namespace

void SharedMemoryTransport::Offer(const TransportSettings& settings,
                                  proto::TransportOffer* offer) const {
  offer->set_shared_memory(settings.shared_memory);
}

TransportFit SharedMemoryTransport::Fit(
    absl::Span<const RankOffer> offers) const {
  std::vector<std::string> hosts;
  for (const RankOffer& from : offers) {
    if (!from.offer->shared_memory()) {
      return {false,
              absl::StrCat("rank ", from.rank, " has --noshared_memory")};
    }
    hosts.push_back(from.offer->host());
  }
  const size_t host_count = GroupByHost(hosts).size();
  if (host_count > 1) {
    return {false, absl::StrCat("the ranks are on ", host_count, " hosts")};
  }
  if (offers.size() > kSharedMemoryRanksMax) {
    return {false,
            absl::StrCat("a host has ", offers.size(), " ranks and at most ",
                         kSharedMemoryRanksMax, " can share memory")};
  }
  return {true, "all ranks are on one host"};
}

absl::StatusOr<std::unique_ptr<TransportEndpoint>>
SharedMemoryTransport::Prepare(const TransportContext&, const GroupPlan& plan,
                               TransportRanks ranks,
                               proto::ReplicaEndpoint* endpoint) const {
  std::unique_ptr<LocalEndpoint> listening;
  if (ranks.size() > 1) {
    ASSIGN_OR_RETURN(listening, LocalEndpoint::Listen());
    endpoint->set_shared_memory(listening->address());
  }
  return std::make_unique<SharedMemoryEndpoint>(&plan, std::move(ranks),
                                                std::move(listening));
}

}  // namespace muster
