#include "common/net/collectives/transports/group_plan.h"

#include <cstddef>
#include <map>

namespace muster {

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

std::vector<std::vector<int>> RanksByHost(const GroupPlan& plan) {
  std::vector<std::string> hosts;
  for (const GroupPlan::Member& member : plan.members) {
    hosts.insert(hosts.end(), plan.replicas_per_task, member.host);
  }
  return GroupByHost(hosts);
}

}  // namespace muster
