#ifndef COMMON_NET_COLLECTIVES_PEERS_HANG_REPORT_H_
#define COMMON_NET_COLLECTIVES_PEERS_HANG_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/net/collectives/communicator.h"
#include "proto/peer_group.pb.h"

namespace muster {

// The answer of a peer to the question for its progress; nothing without an
// answer.
struct PeerProgress {
  std::string task;  // "worker 1"
  std::optional<proto::ProgressReport> report;
};

// The line about a collective that does not end. `peers` by rank of the task;
// of the own entry only the silent peers are read. Tasks that do not hear each
// other are named whichever task writes the line, so that a broken link between
// two is known to all.
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
