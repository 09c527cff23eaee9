#include "common/net/collectives/peers/hang_report.h"

#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster {
namespace {

// A line names up to this many tasks and counts the rest.
constexpr size_t kNamedMax = 8;

std::string Join(const std::vector<std::string>& parts, const char* separator) {
  if (parts.size() <= kNamedMax) return absl::StrJoin(parts, separator);
  return absl::StrCat(
      absl::StrJoin(parts.begin(), parts.begin() + kNamedMax, separator),
      " and ", parts.size() - kNamedMax, " more");
}

std::string WhereIs(const proto::ReplicaProgress& replica) {
  if (!replica.is_running()) {
    return absl::StrCat("in no collective after ", replica.sequence(),
                        " of them");
  }
  return absl::StrCat("in ", replica.operation(), " number ",
                      replica.sequence(), " of ", replica.name(), " for ",
                      std::llround(replica.elapsed_seconds()), " s");
}

void AppendSilentPeers(const proto::ProgressReport& report,
                       absl::string_view prefix,
                       std::vector<std::string>* parts) {
  for (const proto::SilentPeer& silent : report.silent_peers()) {
    parts->push_back(
        absl::StrCat(prefix, "has not heard of ", silent.task(), " for ",
                     std::llround(silent.silence_seconds()), " s"));
  }
}

std::string WhereIs(const PeerProgress& peer) {
  if (!peer.report.has_value()) {
    return absl::StrCat(peer.task, " does not answer");
  }
  std::vector<std::string> parts;
  for (int i = 0; i < peer.report->replicas_size(); ++i) {
    const std::string where = WhereIs(peer.report->replicas(i));
    parts.push_back(
        peer.report->replicas_size() == 1
            ? absl::StrCat(peer.task, " is ", where)
            : absl::StrCat("replica ", i, " of ", peer.task, " is ", where));
  }
  if (!peer.report->activity().empty()) {
    parts.push_back(absl::StrCat("step ", peer.report->step()));
    parts.push_back(peer.report->activity());
  }
  AppendSilentPeers(*peer.report, "", &parts);
  return absl::StrJoin(parts, ", ");
}

// Returns true if the peer is not in this collective, or does not receive
// messages from all tasks.
bool IsElsewhere(const PeerProgress& peer, const CollectiveProgress& own) {
  if (!peer.report.has_value() || peer.report->silent_peers_size() > 0) {
    return true;
  }
  for (const proto::ReplicaProgress& replica : peer.report->replicas()) {
    if (!replica.is_running() || replica.sequence() != own.sequence) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string DescribeRank(int rank, int replicas_per_task,
                         absl::Span<const PeerProgress> peers) {
  const std::string& task = peers[rank / replicas_per_task].task;
  if (replicas_per_task == 1) {
    return absl::StrCat("rank ", rank, " (", task, ")");
  }
  return absl::StrCat("rank ", rank, " (replica ", rank % replicas_per_task,
                      " of ", task, ")");
}

std::string DescribeHang(const CollectiveProgress& own, int own_task,
                         int replicas_per_task,
                         absl::Span<const PeerProgress> peers) {
  std::vector<std::string> missing;
  std::vector<bool> is_missing(peers.size());
  for (const int rank : own.missing_ranks) {
    if (rank < 0 ||
        rank / replicas_per_task >= static_cast<int>(peers.size())) {
      continue;
    }
    missing.push_back(DescribeRank(rank, replicas_per_task, peers));
    is_missing[rank / replicas_per_task] = true;
  }
  std::vector<std::string> where;
  const PeerProgress& self = peers[own_task];
  if (self.report.has_value()) {
    AppendSilentPeers(*self.report, absl::StrCat(self.task, " "), &where);
  }
  for (size_t task = 0; task < peers.size(); ++task) {
    if (static_cast<int>(task) == own_task) continue;
    if (is_missing[task] || IsElsewhere(peers[task], own)) {
      where.push_back(WhereIs(peers[task]));
    }
  }
  return absl::StrCat(
      "in ", own.operation, " number ", own.sequence, " of ", own.name, " for ",
      absl::ToInt64Seconds(absl::Floor(own.elapsed, absl::Seconds(1))), " s",
      missing.empty() ? std::string()
                      : absl::StrCat("; not there yet: ", Join(missing, ", ")),
      where.empty() ? std::string(". All others are in it, too")
                    : absl::StrCat(". ", Join(where, "; ")));
}

}  // namespace muster
