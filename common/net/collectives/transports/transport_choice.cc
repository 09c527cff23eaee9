#include "common/net/collectives/transports/transport_choice.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/net/collectives/transports/transports.h"
#include "proto/peer_group.pb.h"

namespace muster {
namespace {

std::vector<RankOffer> OffersByRank(
    absl::Span<const proto::TransportOffer> offers, int replicas_per_task) {
  std::vector<RankOffer> by_rank;
  for (const proto::TransportOffer& offer : offers) {
    for (int i = 0; i < replicas_per_task; ++i) {
      by_rank.push_back({static_cast<int>(by_rank.size()), &offer, i});
    }
  }
  return by_rank;
}

}  // namespace

TransportChoice ChooseTransport(
    CommunicationImplementation implementation,
    absl::Span<const proto::TransportOffer> offers, int replicas_per_task,
    const std::map<std::string, std::string>& failures) {
  const std::vector<RankOffer> by_rank =
      OffersByRank(offers, replicas_per_task);
  const bool takes_all = implementation == CommunicationImplementation::kAuto;
  TransportChoice choice;
  std::string because;
  std::string left_out;
  const auto leave_out = [&](absl::string_view name, absl::string_view why) {
    absl::StrAppend(&left_out, "; ", name, " was left out: ", why);
  };
  for (const Transport* const transport : kTransports) {
    if (!takes_all && transport->implementation() != implementation) continue;
    const TransportFit fit = transport->Fit(by_rank);
    const auto failure = failures.find(transport->name());
    if (fit.fits && failure == failures.end()) {
      choice.transport = transport;
      because = absl::StrCat(transport->name(), " because ", fit.reason);
      break;
    }
    leave_out(transport->name(), fit.fits ? failure->second : fit.reason);
  }
  choice.reason =
      absl::StrCat(CommunicationImplementationName(implementation), " chose ",
                   because.empty() ? "no transport" : because, left_out);
  return choice;
}

}  // namespace muster
