#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "common/net/rpc/channel.h"
#include "coordinator/rollback_point.h"
#include "coordinator/server_recovery.h"
#include "coordinator/server_watch.h"

// The state of the servers during a recovery, and its description.
namespace muster {

std::string ServerRecovery::DescribeLoss() const {
  std::vector<std::string> lost;
  const std::vector<ServerWatch::State> states = parts_.watch->states();
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i].lost.ok()) continue;
    lost.push_back(parts_.watch->channel(static_cast<int>(i)).peer());
  }
  if (lost.empty()) return "";
  std::string checkpoint = "this run has written no checkpoint";
  for (const RollbackPoint& point : rollback_points_.List()) {
    if (point.prefix.empty() || !IsPublished(point.prefix)) continue;
    checkpoint = absl::StrCat("the newest checkpoint is ", point.prefix);
    break;
  }
  return absl::StrCat("the newest steps could not be saved, because ",
                      absl::StrJoin(lost, ", "),
                      lost.size() == 1 ? " is lost" : " are lost",
                      ", with the variables there; ", checkpoint);
}

std::vector<RemoteVariableStore::ReplacedServer> ServerRecovery::Returned()
    const {
  std::vector<RemoteVariableStore::ReplacedServer> returned;
  const std::vector<ServerWatch::State> states = parts_.watch->states();
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i].incarnation == holders_[i]) continue;
    returned.push_back({static_cast<int>(i), states[i].incarnation});
  }
  return returned;
}

bool ServerRecovery::HasTrouble() const {
  const std::vector<ServerWatch::State> states = parts_.watch->states();
  return !Returned().empty() ||
         std::any_of(states.begin(), states.end(),
                     [](const ServerWatch::State& s) { return !s.lost.ok(); });
}

std::vector<std::string> ServerRecovery::NamesOf(
    const std::vector<RemoteVariableStore::ReplacedServer>& servers) const {
  std::vector<std::string> names;
  for (const auto& server : servers) {
    names.push_back(parts_.watch->channel(server.server).peer());
  }
  return names;
}

}  // namespace muster
