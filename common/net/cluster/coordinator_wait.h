#ifndef COMMON_NET_CLUSTER_COORDINATOR_WAIT_H_
#define COMMON_NET_CLUSTER_COORDINATOR_WAIT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/core/system/wait_line.h"
#include "common/net/cluster/cluster_spec.h"

namespace muster {

// Returns "the coordinator (chief h0:2222)", or "the coordinator" if the
// cluster does not list a chief.
std::string DescribeCoordinator(const ClusterSpec& cluster);

// How long a task waits for its coordinator, or for another one of the job,
// after the last message.
class CoordinatorGrace {
 public:
  // Implicit, because mostly there is only a time. If `is_extensible`, a
  // coordinator whose job another one may continue can ask for a longer time.
  CoordinatorGrace(absl::Duration time = absl::ZeroDuration(),
                   bool is_extensible = true)
      : time_(time), is_extensible_(is_extensible) {}

  // Returns the time if the coordinator has asked for `asked_ms` milliseconds,
  // of which at most a day counts.
  absl::Duration For(int64_t asked_ms) const;

 private:
  absl::Duration time_;
  bool is_extensible_;
};

// Decides what a task logs while it has no coordinator, and when it gives up.
// The caller does the waiting:
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
    // How long to wait for a coordinator, at first and after each loss.
    absl::Duration timeout = absl::Minutes(10);
    absl::Duration report_interval = absl::Seconds(5);
  };

  CoordinatorWait(const Options& options, absl::Time now);

  // Updates the state. `lost_count` is the number of coordinators lost so far.
  // Returns the line to log, or "".
  //   kDeadlineExceeded  no coordinator connected, or reconnected, in time
  absl::StatusOr<std::string> Look(bool is_alone, int lost_count,
                                   absl::Time now);

  // Returns the time to call Look() again if nothing changes;
  // absl::InfiniteFuture() if a coordinator is connected.
  absl::Time next_look() const;

 private:
  const Options options_;
  bool is_alone_ = true;
  int lost_count_ = 0;
  absl::Time alone_since_;
  ReportPace pace_;
};

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_COORDINATOR_WAIT_H_
