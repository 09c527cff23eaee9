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
// index. Evaluators and parameter servers are not included.
std::vector<TaskId> GroupTasks(const ClusterSpec& cluster);

// Identifies a task to its peers and checks theirs. The hello of a caller and
// the hello in the answer are checked in the same way, so that both ends report
// a disagreement, each from its own point of view.
//
// Constant, so thread-safe.
class Admission {
 public:
  struct Options {
    TaskId task;
    uint64_t incarnation = 0;
    // As PeerGroup::Options::view.
    uint64_t view = 0;
    std::string address;
    ClusterSpec cluster;
    int replicas_per_task = 1;
    JobDigest digest;
    proto::TransportOffer transports;
    // Why this task cannot train, if it cannot. It then connects only to report
    // this to the others.
    absl::Status failure;
  };

  explicit Admission(Options options);

  const Options& options() const { return options_; }
  // `target` is the task to which the hello is sent; absent in an answer.
  proto::PeerHello Hello(std::optional<TaskId> target) const;

  // Returns OK if the process that sent `hello` can join the group. `rank` is
  // the rank to which this task connected if the hello is an answer, and -1 if
  // it is a caller's.
  //   kInvalidArgument     the hello is invalid
  //   kNotFound            the answer is from another task, or the caller's
  //                        hello is for another task
  //   kAborted             the two tasks are in different views
  //   kFailedPrecondition  the two tasks disagree about the cluster, the
  //                        replicas or the job. Says about what, and carries
  //                        GroupErrorKind::kDisagreement. If one of the two
  //                        cannot train, only the cluster is compared
  absl::Status Check(const proto::PeerHello& hello, int rank) const;

 private:
  absl::Status CheckAgreement(TaskId peer, const proto::PeerHello& hello) const;

  const Options options_;
  const std::vector<TaskId> tasks_;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_PEERS_ADMISSION_H_
