#ifndef COMMON_NET_COLLECTIVES_PEERS_HANG_WATCH_H_
#define COMMON_NET_COLLECTIVES_PEERS_HANG_WATCH_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/system/clock.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/peers/group_life.h"
#include "common/net/collectives/peers/hang_report.h"
#include "common/net/collectives/peers/peer_links.h"
#include "common/net/status/status_report.h"

namespace muster {

namespace proto {
class PeerMessage;
class ProgressReport;
}  // namespace proto

// Detects collectives that do not end, asks the peers for their progress, and
// reports both, repeatedly at growing intervals.
//
// Thread-safe.
class HangWatch {
 public:
  // All are borrowed.
  HangWatch(absl::Duration interval, int replicas_per_task, PeerLinks* links,
            GroupLife* life, Clock* clock);

  // Sets the communicators to watch, by local replica. Borrowed.
  void Adopt(std::vector<const Communicator*> communicators)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Sets the activity of this task between collectives, for the reports of
  // others. `activity` lives as long as the process.
  void NoteActivity(const char* activity, uint64_t step) {
    activity_.store(activity, std::memory_order_relaxed);
    step_.store(step, std::memory_order_relaxed);
  }

  // Checks that no collective has waited for `patience` or longer for a task
  // that has finished and therefore will never join it.
  //   kFailedPrecondition  one has, because that task had fewer steps
  absl::Status CheckAwaitedTasksHaveNotLeft(absl::Duration patience)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Called at every heartbeat interval. Returns the line that is due, or "".
  std::string OnTick() ABSL_LOCKS_EXCLUDED(mutex_);
  // Handles a progress request or report of this group.
  void OnMessage(int rank, const proto::PeerMessage& message)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Adds the collectives that are waiting for other tasks to `report`. Returns
  // how long this task has waited for each task, by rank of the task, as
  // sampled at ticks.
  struct Waited {
    absl::Duration total;
    double recent_share = 0;  // 0 to 1.
  };
  std::vector<Waited> AddWaits(StatusReport* report) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the names of all tasks ("worker 0", ...) without reports, for
  // DescribeRank().
  std::vector<PeerProgress> TaskNames() const;

 private:
  struct Watched {
    const Communicator* communicator = nullptr;
    uint64_t sequence = 0;
    absl::Duration next_report;  // Time from the start of the collective.
  };

  void SampleWaits() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  proto::ProgressReport OwnReport() ABSL_LOCKS_EXCLUDED(mutex_);
  void AddSilentPeers(proto::ProgressReport* report) const;
  // Returns a collective for which a report is due.
  std::optional<CollectiveProgress> FindOverdue()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const absl::Duration interval_;
  const int replicas_per_task_;
  PeerLinks* const links_;
  GroupLife* const life_;
  Clock* const clock_;
  std::atomic<const char*> activity_{nullptr};
  std::atomic<uint64_t> step_{0};

  mutable absl::Mutex mutex_;
  std::vector<Watched> watched_ ABSL_GUARDED_BY(mutex_);
  // The collective about which the peers are being asked, if any, and until
  // when answers are awaited.
  std::optional<CollectiveProgress> overdue_ ABSL_GUARDED_BY(mutex_);
  absl::Time answers_until_ ABSL_GUARDED_BY(mutex_);
  std::vector<PeerProgress> answers_ ABSL_GUARDED_BY(mutex_);
  int answer_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Waited> waited_ ABSL_GUARDED_BY(mutex_);  // By rank of the task.
  absl::Time last_sample_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_PEERS_HANG_WATCH_H_
