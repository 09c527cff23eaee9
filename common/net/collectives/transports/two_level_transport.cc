#include "common/net/collectives/transports/two_level_transport.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/net/collectives/message/two_level_communicator.h"
#include "proto/peer_group.pb.h"

namespace muster {
namespace {

using Hosts = std::vector<std::vector<int>>;

class TwoLevelEndpoint final : public TransportEndpoint {
 public:
  // `across` is null for a rank that connects to ranks of its own host only.
  TwoLevelEndpoint(int rank, Hosts hosts,
                   std::unique_ptr<TransportEndpoint> within,
                   std::unique_ptr<TransportEndpoint> across)
      : rank_(rank),
        hosts_(std::move(hosts)),
        within_(std::move(within)),
        across_(std::move(across)) {}

  absl::StatusOr<std::unique_ptr<Communicator>> Connect(
      absl::Span<const proto::ReplicaEndpoint> endpoints,
      absl::Time deadline) override {
    TwoLevelGroup group;
    group.rank = rank_;
    group.hosts = hosts_;
    ASSIGN_OR_RETURN(group.local, within_->Connect(endpoints, deadline));
    if (across_ != nullptr) {
      ASSIGN_OR_RETURN(group.across, across_->Connect(endpoints, deadline));
    }
    return MakeTwoLevelCommunicator(std::move(group));
  }

 private:
  const int rank_;
  const Hosts hosts_;
  const std::unique_ptr<TransportEndpoint> within_;
  const std::unique_ptr<TransportEndpoint> across_;
};

}  // namespace

std::string TwoLevelTransport::name() const {
  return absl::StrCat(within_->name(), " within hosts and ", across_->name(),
                      " between them");
}

bool TwoLevelTransport::leaves_processor_idle() const {
  return across_->leaves_processor_idle();
}

void TwoLevelTransport::Offer(const TransportSettings&,
                              proto::TransportOffer*) const {}

TransportFit TwoLevelTransport::Fit(absl::Span<const RankOffer> offers) const {
  std::vector<std::string> hosts;
  for (const RankOffer& from : offers) hosts.push_back(from.offer->host());
  const Hosts ranks_by_host = GroupByHost(hosts);
  if (ranks_by_host.size() == 1) return {false, "all ranks are on one host"};
  size_t ranks_per_host_max = 0;
  for (const std::vector<int>& indices : ranks_by_host) {
    ranks_per_host_max = std::max(ranks_per_host_max, indices.size());
    std::vector<RankOffer> of_host;
    for (const int index : indices) of_host.push_back(offers[index]);
    TransportFit fit = within_->Fit(of_host);
    if (!fit.fits) return fit;
  }
  if (ranks_per_host_max == 1) return {false, "every host has one rank"};
  TransportFit across = across_->Fit(offers);
  if (!across.fits) return across;
  return {true, absl::StrCat("some of the ", ranks_by_host.size(),
                             " hosts have several ranks")};
}

absl::StatusOr<std::unique_ptr<TransportEndpoint>> TwoLevelTransport::Prepare(
    const TransportContext& context, const GroupPlan& plan,
    TransportRanks ranks, proto::ReplicaEndpoint* endpoint) const {
  Hosts hosts = RanksByHost(plan);
  if (ranks.size() != plan.rank_count()) {
    return absl::InvalidArgumentError(absl::StrCat(
        name(), " connects all ", plan.rank_count(), " ranks of a group; got ",
        ranks.size(), ": compose other transports"));
  }
  TransportRanks own = {.self = ranks.self};
  for (const std::vector<int>& of_host : hosts) {
    TransportRanks candidate = {.self = ranks.self, .ranks = of_host};
    if (candidate.contains(ranks.self)) own = std::move(candidate);
  }
  ASSIGN_OR_RETURN(auto within, within_->Prepare(context, plan, own, endpoint));
  const int place = own.IndexOf(own.self);
  const bool is_even = std::all_of(
      hosts.begin(), hosts.end(),
      [&](const auto& of_host) { return of_host.size() == own.ranks.size(); });
  std::unique_ptr<TransportEndpoint> across;
  if (is_even || place == 0) {
    TransportRanks leaders = {.self = ranks.self};
    for (const auto& of_host : hosts) leaders.ranks.push_back(of_host[place]);
    ASSIGN_OR_RETURN(
        across, across_->Prepare(context, plan, std::move(leaders), endpoint));
  }
  return std::make_unique<TwoLevelEndpoint>(
      ranks.self, std::move(hosts), std::move(within), std::move(across));
}

}  // namespace muster
