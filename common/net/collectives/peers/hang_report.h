#ifndef COMMON_NET_COLLECTIVES_PEERS_HANG_REPORT_H_
#define COMMON_NET_COLLECTIVES_PEERS_HANG_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/net/collectives/communicator.h"
#include "proto/peer_group.pb.h"

namespace muster {

// The progress report of a peer; nullopt if the peer has not answered.
struct PeerProgress {
  std::string task;  // "worker 1"
  std::optional<proto::ProgressReport> report;
};

// Returns the line about a collective that does not end. `peers` is indexed by
// the rank of the task. Only the silent peers are read from this task's own
// entry. Every task names all tasks that receive nothing from each other, so
// that a broken connection between two tasks is reported by the others, too.
//
//   in all-reduce number 120 of dense/kernel and 3 more for 31 s; not there
//   yet: rank 1 (worker 1). worker 1 is in no collective after 119 of them,
//   step 120, reading input
std::string DescribeHang(const CollectiveProgress& own, int own_task,
                         int replicas_per_task,
                         absl::Span<const PeerProgress> peers);

// "rank 3 (replica 1 of worker 1)".
std::string DescribeRank(int rank, int replicas_per_task,
                         absl::Span<const PeerProgress> peers);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_PEERS_HANG_REPORT_H_
