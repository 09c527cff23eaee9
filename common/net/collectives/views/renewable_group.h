#ifndef COMMON_NET_COLLECTIVES_VIEWS_RENEWABLE_GROUP_H_
#define COMMON_NET_COLLECTIVES_VIEWS_RENEWABLE_GROUP_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/system/clock.h"
#include "common/io/storage/disk.h"
#include "common/net/cluster/task_id.h"
#include "common/net/collectives/peers/peer_group.h"
#include "common/net/collectives/views/group_view.h"
#include "common/net/collectives/views/join_requests.h"
#include "common/net/collectives/views/joiner_watch.h"
#include "common/net/rpc/network.h"
#include "common/net/status/run_timeline.h"
#include "common/net/status/status_report.h"

namespace muster {

namespace proto {
class GroupStart;
}  // namespace proto

// A peer group that is formed again, by the tasks that are left, after it has
// lost a task, and with processes that ask to join.
//
// Which tasks are left is decided by a file (ViewClaims): the first task that
// notices the loss creates the next view, and the others form it. A task that
// is not in the view has to end. If less than a majority of the view before is
// left, and a lost task may still run, tasks wait for another heartbeat timeout
// before they create a view, so that a task that is cut off does not remove the
// others.
//
// A process that starts when the group runs joins it: it asks by a file
// (JoinRequests), prepares, and waits until the group has formed a view with
// it.
//
// Thread-safe; calls that form a group run one at a time.
class RenewableGroup {
 public:
  struct Options {
    PeerGroup::Options group;
    // The smallest number of tasks that continue. 0: no loss is tolerated.
    int task_count_min = 0;
    // A folder or an object URL that all tasks share; views are files in it.
    std::string run_dir;
    Disk* disk = Disk::Real();  // Borrowed.
    // Time limit for Renew().
    absl::Duration renew_timeout = absl::Minutes(2);
    // How often the first task looks for processes that ask to join. In an
    // object store, each look is a request.
    absl::Duration request_interval = absl::Milliseconds(250);
  };

  // Joins the group of all tasks of the cluster. If that group already runs
  // without this process, asks to join it: is_joining() is then true.
  // `network` and `clock` are borrowed.
  //   kInvalidArgument  `task_count_min` is more than the cluster has, or there
  //                     is no `run_dir`
  //   others            as PeerGroup::Join()
  static absl::StatusOr<std::unique_ptr<RenewableGroup>> Join(
      const Options& options, Network* network, Clock* clock);

  RenewableGroup(const RenewableGroup&) = delete;
  RenewableGroup& operator=(const RenewableGroup&) = delete;

  ~RenewableGroup();

  int task_count_min() const { return options_.task_count_min; }
  bool is_renewable() const { return options_.task_count_min > 0; }

  // The group of the current view; null while Renew() runs. Do not keep it:
  // while it is referenced, its address is slow to become free.
  std::shared_ptr<PeerGroup> current() const ABSL_LOCKS_EXCLUDED(mutex_);
  GroupView view() const ABSL_LOCKS_EXCLUDED(mutex_);

  // True if training can continue after the group has ended with `cause`: a
  // task is lost, or has ended in a way that a new process continues from.
  static bool IsLoss(const absl::Status& cause);

  // Forms the next group after the current one has ended with a loss. Its
  // communicators must not be used any more. Logs who is left.
  //   the cause of the current group  it is no loss, or no loss is tolerated
  //   kUnavailable      fewer than `task_count_min` tasks are left, or the
  //                     group could not be formed in time
  //   kAborted          the other tasks continue without this one
  //   others            of the run directory
  absl::Status Renew() ABSL_LOCKS_EXCLUDED(renew_mutex_, mutex_);

  // True until AwaitAdmission() has succeeded, in a process that joins a
  // running group.
  bool is_joining() const ABSL_LOCKS_EXCLUDED(mutex_);

  // What the group has done before training, for a process that joins. Blocks
  // until training has begun.
  //   kDeadlineExceeded    training does not begin
  //   kUnavailable         the group does not run any more
  //   kFailedPrecondition  no process can join; says why
  absl::StatusOr<proto::GroupStart> AwaitStart();
  // Records the same, in a process of the group, when training begins.
  absl::Status WriteStart(const proto::GroupStart& start);

  // Asks to be taken in, and blocks until the group is formed with this
  // process.
  //   kDeadlineExceeded, kUnavailable  as AwaitStart()
  //   others                           as Renew()
  absl::Status AwaitAdmission() ABSL_LOCKS_EXCLUDED(renew_mutex_, mutex_);

  // True if a process is ready to join. Known to the first task only.
  bool has_joiners() const { return watch_ != nullptr && watch_->has_ready(); }
  // Creates the next view, with the processes that are ready to join. Called by
  // the first task, before all tasks call Advance().
  //   others  of the run directory
  absl::Status ClaimWithJoiners() ABSL_LOCKS_EXCLUDED(mutex_);
  // Leaves the current group, which has not failed, and forms that of the next
  // view. All tasks of the group call it.
  //   as Renew()
  absl::Status Advance() ABSL_LOCKS_EXCLUDED(renew_mutex_, mutex_);

  // The changes of the group, also those before this process joined it.
  TimelineStatus timeline() const { return timeline_.status(); }

  // As PeerGroup, for the current group. Without one, Fail() applies to the
  // next group. In a renewable group, Leave() of the first task returns OK if
  // `status` is OK and another task was lost.
  void Fail(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Leave(const absl::Status& status, absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteActivity(const char* activity, uint64_t step)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  RenewableGroup(const Options& options, Network* network, Clock* clock);

  // Forms the group of all tasks, or finds the one that runs.
  absl::Status Start();
  // Asks the running group, if there is one, to join. Returns true if it has
  // answered.
  absl::StatusOr<bool> AskToJoin();
  // Blocks until `is_done` returns true, while the group shows that it runs.
  absl::Status AwaitWhileGroupRuns(
      absl::string_view what,
      absl::FunctionRef<absl::StatusOr<bool>()> is_done);
  void UseFolder(std::string folder);
  // Begins to answer the processes that ask to join.
  void WatchJoiners();
  // Forms the group of the view after that of this object, or of the one after
  // it, and so on.
  absl::Status FormNext(std::set<TaskId> gone, bool is_certain,
                        absl::Duration form_timeout, absl::Time start)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(renew_mutex_) ABSL_LOCKS_EXCLUDED(mutex_);
  GroupView::Member self() const;
  void NoteChange(const GroupView& before, const GroupView& view,
                  absl::Duration pause);
  // Adds the views before this process joined the group.
  void NoteEarlierChanges();

  // Ends the current group and returns its tasks that cannot be reached.
  std::vector<PeerGroup::Absence> End(absl::Status* cause)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(renew_mutex_) ABSL_LOCKS_EXCLUDED(mutex_);
  // Creates the view after `before` without the tasks of `gone`, or returns the
  // view that exists.
  absl::StatusOr<GroupView> NextView(const GroupView& before,
                                     const std::set<TaskId>& gone,
                                     bool is_certain, absl::Time deadline);
  // Blocks until a view after `number` exists or the time is over.
  absl::StatusOr<bool> AwaitView(uint64_t number, absl::Time deadline);
  absl::StatusOr<std::unique_ptr<PeerGroup>> Form(const GroupView& view,
                                                  absl::Duration timeout,
                                                  std::vector<TaskId>* missing)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(renew_mutex_);
  void Adopt(GroupView view, std::shared_ptr<PeerGroup> group)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  Network* const network_;
  Clock* const clock_;
  const GroupView first_view_;  // Without incarnations.
  RunTimeline timeline_;
  // Constant after Join(), and null unless the group is renewable.
  std::unique_ptr<ViewClaims> claims_;
  std::unique_ptr<JoinRequests> requests_;
  absl::Mutex renew_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  uint64_t generation_ ABSL_GUARDED_BY(renew_mutex_) = 0;

  mutable absl::Mutex mutex_;
  GroupView view_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<PeerGroup> current_ ABSL_GUARDED_BY(mutex_);
  // Of Fail() while there was no group.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  bool is_joining_ ABSL_GUARDED_BY(mutex_) = false;

  std::unique_ptr<JoinerWatch> watch_;  // Null before the group is formed.
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_VIEWS_RENEWABLE_GROUP_H_
