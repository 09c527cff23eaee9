#ifndef COMMON_NET_COLLECTIVES_PEERS_GROUP_LIFE_H_
#define COMMON_NET_COLLECTIVES_PEERS_GROUP_LIFE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/system/clock.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/transports/group_plan.h"

namespace muster {

class PeerLinks;
namespace proto {
class FailureNotice;
class PeerMessage;
}  // namespace proto

// Handles the end of a group: it ends with the first error that any task
// detects, which is sent to all, or when all tasks have finished.
//
// Thread-safe.
class GroupLife {
 public:
  // `links` and `clock` are borrowed.
  GroupLife(PeerLinks* links, Clock* clock);

  // Sets the group that is being formed or has been formed. Messages of other
  // groups are ignored.
  void Begin(const GroupPlan& plan) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sets the communicators to abort when the group ends, which replace those of
  // an earlier call. Borrowed: they must live until the next call, which may
  // pass none.
  void Adopt(std::vector<Communicator*> communicators)
      ABSL_LOCKS_EXCLUDED(mutex_, abort_mutex_);

  bool IsOfGroup(const proto::PeerMessage& message) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends `message` as a message of this group. Returns false if the peer is
  // not connected.
  bool Send(int rank, proto::PeerMessage message) ABSL_LOCKS_EXCLUDED(mutex_);

  // Events of PeerLinks.
  void OnLost(int rank, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnGone(int rank) ABSL_LOCKS_EXCLUDED(mutex_);
  // A broken connection has been restored. Messages sent on it may have been
  // lost, so a leave message is sent again.
  void OnBack(int rank) ABSL_LOCKS_EXCLUDED(mutex_);
  // Handles a failure, leave or acknowledgement message of this group.
  void OnMessage(int rank, const proto::PeerMessage& message)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends the group with an error of this task, which is not OK.
  void Fail(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  // True if the task `rank` has finished and will join no more collectives.
  bool HasLeft(int rank) const ABSL_LOCKS_EXCLUDED(mutex_);

  // The rank of the task whose own failure has ended the group. Unset if the
  // cause is another.
  std::optional<int> failed_rank() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Return the first cause, or OK if there is none. AwaitCause() waits up to
  // `patience` for one.
  absl::Status cause() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status AwaitCause(absl::Duration patience) ABSL_LOCKS_EXCLUDED(mutex_);

  // As PeerGroup::Leave().
  absl::Status Leave(const absl::Status& status, absl::Time deadline,
                     absl::Duration report_interval,
                     absl::FunctionRef<void(absl::string_view)> report)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Peer {
    bool has_left = false;
    bool has_acknowledged = false;  // Acknowledged that this task leaves or has
                                    // failed.
    bool is_gone = false;
  };

  void End(const absl::Status& cause, bool is_own,
           std::optional<int> failed_rank = std::nullopt)
      ABSL_LOCKS_EXCLUDED(mutex_, abort_mutex_);
  absl::Status AwaitOthers(absl::Time deadline, absl::Duration report_interval,
                           absl::FunctionRef<void(absl::string_view)> report)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void AwaitAcknowledgements() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CauseFrom(int rank, const proto::FailureNotice& notice) const;
  std::string TasksNotFinished() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  PeerLinks* const links_;
  Clock* const clock_;

  // Held while communicators are aborted, so that none is destroyed meanwhile.
  absl::Mutex abort_mutex_;
  std::vector<Communicator*> communicators_ ABSL_GUARDED_BY(abort_mutex_);

  mutable absl::Mutex mutex_;
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t token_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Peer> peers_ ABSL_GUARDED_BY(mutex_);  // By rank.
  bool is_leaving_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status cause_ ABSL_GUARDED_BY(mutex_);
  std::optional<int> failed_rank_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_PEERS_GROUP_LIFE_H_
