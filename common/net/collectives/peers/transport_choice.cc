#include "common/net/collectives/peers/transport_choice.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <map>

#include "absl/strings/str_cat.h"
#include "common/net/collectives/shm/shared_memory_group.h"

namespace muster {
namespace {

proto::TransportPlan Plan(proto::TransportPlan::Kind kind, bool raw_sockets) {
  proto::TransportPlan plan;
  plan.set_kind(kind);
  plan.set_raw_sockets(raw_sockets);
  return plan;
}

}  // namespace

std::string OwnHostName() {
  std::string boot_id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot_id;
  char network[PATH_MAX] = {};
  const ssize_t length =
      readlink("/proc/self/ns/net", network, sizeof(network) - 1);
  return absl::StrCat(boot_id, "/", length > 0 ? network : "");
}

std::vector<std::vector<int>> GroupByHost(absl::Span<const std::string> hosts) {
  std::vector<std::vector<int>> groups;
  std::map<std::string, size_t> index_of;
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    const auto [it, is_new] = index_of.try_emplace(hosts[rank], groups.size());
    if (is_new) groups.emplace_back();
    groups[it->second].push_back(static_cast<int>(rank));
  }
  return groups;
}

std::vector<proto::TransportPlan> RankTransports(
    absl::Span<const proto::TransportOffer> offers, int replicas_per_task) {
  bool all_raw = true;
  bool all_shared = true;
  std::vector<std::string> hosts;
  for (const proto::TransportOffer& offer : offers) {
    all_raw &= offer.raw_sockets();
    all_shared &= offer.shared_memory();
    hosts.push_back(offer.host());
  }
  const std::vector<std::vector<int>> groups = GroupByHost(hosts);
  size_t ranks_per_host_max = 0;
  for (const auto& group : groups) {
    ranks_per_host_max =
        std::max(ranks_per_host_max, group.size() * replicas_per_task);
  }
  const bool fits = ranks_per_host_max <= kSharedMemoryRanksMax;

  std::vector<proto::TransportPlan> plans;
  if (all_shared && fits && groups.size() == 1) {
    plans.push_back(Plan(proto::TransportPlan::SHARED_MEMORY, false));
  } else if (all_shared && fits && ranks_per_host_max > 1) {
    if (all_raw) plans.push_back(Plan(proto::TransportPlan::TWO_LEVEL, true));
    plans.push_back(Plan(proto::TransportPlan::TWO_LEVEL, false));
  }
  if (all_raw) plans.push_back(Plan(proto::TransportPlan::MESSAGES, true));
  plans.push_back(Plan(proto::TransportPlan::MESSAGES, false));
  return plans;
}

std::string DescribeTransport(const proto::TransportPlan& plan) {
  const char* const messages = plan.raw_sockets() ? "raw sockets" : "gRPC";
  switch (plan.kind()) {
    case proto::TransportPlan::SHARED_MEMORY:
      return "shared memory";
    case proto::TransportPlan::TWO_LEVEL:
      return absl::StrCat("shared memory within hosts and ", messages,
                          " between them");
    default:
      return messages;
  }
}

}  // namespace muster
