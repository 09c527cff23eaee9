#ifndef COMMON_NET_CLUSTER_COORDINATOR_WAIT_H_
#define COMMON_NET_CLUSTER_COORDINATOR_WAIT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/net/cluster/cluster_spec.h"

namespace muster {

// "the coordinator (chief h0:2222)", or "the coordinator" where the cluster
// does not list it.
std::string DescribeCoordinator(const ClusterSpec& cluster);

// What a task that is dialled by its coordinator says while it has none, and
// when it gives up. Whoever uses this does the waiting:
//
//   CoordinatorWait wait(options, clock->Now());
//   while (...) {
//     ASSIGN_OR_RETURN(const std::string line,
//                      wait.Look(is_alone, lost_count, clock->Now()));
//     if (!line.empty()) LOG(INFO) << line;
//     ... wait for a change until wait.next_look() ...
//   }
//
// Not thread-safe.
class CoordinatorWait {
 public:
  struct Options {
    std::string coordinator = "the coordinator";
    // How long to be without one, at first and after each that was lost.
    absl::Duration timeout = absl::Minutes(10);
    absl::Duration report_interval = absl::Seconds(5);
  };

  CoordinatorWait(const Options& options, absl::Time now);

  // Takes note of how things stand. `lost_count` is how many coordinators were
  // lost so far. Returns the line that is due, or "".
  //   kDeadlineExceeded   no coordinator came, or came back, in time
  absl::StatusOr<std::string> Look(bool is_alone, int lost_count,
                                   absl::Time now);

  // When to look again if nothing changes: never, while there is one.
  absl::Time next_look() const;

 private:
  const Options options_;
  bool is_alone_ = true;
  int lost_count_ = 0;
  absl::Time alone_since_;
  absl::Time next_report_;
};

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_COORDINATOR_WAIT_H_
