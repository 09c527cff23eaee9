#ifndef COMMON_NET_COLLECTIVES_PEERS_ADMISSION_H_
#define COMMON_NET_COLLECTIVES_PEERS_ADMISSION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/task_id.h"
#include "common/net/collectives/peers/job_digest.h"
#include "proto/peer_group.pb.h"

namespace muster {

// The tasks of a synchronous cluster by rank: chief first, then workers by
// index. Evaluators and parameter servers are none of it.
std::vector<TaskId> GroupTasks(const ClusterSpec& cluster);

// How a task identifies itself to its peers and checks theirs. The same
// questions are put to a caller's hello and to the answer, so that both ends
// find out what they disagree about, each in its own words.
//
// Constant, so thread-safe.
class Admission {
 public:
  struct Options {
    TaskId task;
    uint64_t incarnation = 0;
    std::string address;
    ClusterSpec cluster;
    int replicas_per_task = 1;
    JobDigest digest;
    proto::TransportOffer transports;
    // Why this task cannot train; it connects to tell the others.
    absl::Status failure;
  };

  explicit Admission(Options options);

  const Options& options() const { return options_; }
  // `target`: whom the hello is for; absent in an answer.
  proto::PeerHello Hello(std::optional<TaskId> target) const;

  // True if the caller, or the process that answered, can be of the group.
  // `rank` is the one dialled; a caller's is -1.
  //   kInvalidArgument     it is invalid
  //   kNotFound            another process is there: another task, or this very
  //                        one (the hello is for another process)
  //   kFailedPrecondition  we disagree: about the cluster, the replicas or the
  //                        job. Says about what, and carries
  //                        GroupErrorKind::kDisagreement. Where one of the two
  //                        cannot train, the cluster alone is compared
  absl::Status Check(const proto::PeerHello& hello, int rank) const;

 private:
  absl::Status CheckAgreement(TaskId peer, const proto::PeerHello& hello) const;

  const Options options_;
  const std::vector<TaskId> tasks_;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_PEERS_ADMISSION_H_
