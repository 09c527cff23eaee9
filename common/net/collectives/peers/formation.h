#ifndef COMMON_NET_COLLECTIVES_PEERS_FORMATION_H_
#define COMMON_NET_COLLECTIVES_PEERS_FORMATION_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
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
#include "common/net/cluster/missing_tasks.h"
#include "common/net/collectives/communication_implementation.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/peers/peer_links.h"
#include "common/net/collectives/transports/group_plan.h"
#include "common/net/collectives/transports/group_transport.h"
#include "common/net/collectives/transports/transport_choice.h"
#include "proto/peer_group.pb.h"

namespace muster {

// A group whose tasks are connected.
struct FormedGroup {
  GroupPlan plan;
  std::vector<std::unique_ptr<Communicator>> communicators;  // By replica.
};

// Forms a group of connected tasks. Rank 0 is the leader:
//
//   leader                     member
//   proposal (plan, members) ->  opens its endpoints
//                            <-  prepared (endpoints)
//   connect (all endpoints)  ->  connects
//                            <-  connected
//   go                       ->
//
// Every attempt has its own generation. If a task leaves during an attempt, all
// wait until all tasks are present again. If a transport cannot connect, the
// leader logs a warning and tries the next one.
//
// Thread-safe.
class Formation {
 public:
  struct Options {
    ClusterSpec cluster;
    int replicas_per_task = 1;
    // Which transports the leader may choose.
    CommunicationImplementation implementation =
        CommunicationImplementation::kAuto;
    // If false, RING is used if no transport of `implementation` fits.
    bool implementation_is_required = false;
    absl::Duration report_interval = absl::Seconds(5);
    // Time limit for one transport to connect all ranks.
    absl::Duration connect_timeout = absl::Seconds(10);
    // Why this task cannot train, if it cannot. Run() then forms no group: see
    // there.
    absl::Status failure;
    // The generation of the previous group. This group gets a higher one.
    uint64_t last_generation = 0;
  };
  // Called before the group of a plan is connected. From then on, peers may
  // send messages of this group.
  using OnPlan = std::function<void(const GroupPlan&)>;

  // `links`, `transport` and `clock` are borrowed.
  Formation(const Options& options, PeerLinks* links, GroupTransport* transport,
            OnPlan on_plan, Clock* clock);

  // The events of PeerLinks.
  void OnPresent(int rank) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnMissing(int rank, absl::string_view reason)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnRefused(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnFailureDelivered(int rank) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnMessage(int rank, const proto::PeerMessage& message)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits for all tasks and forms a group. `report` gets a line every report
  // interval. Called once. With Options::failure, waits until all other tasks
  // have received the failure, and returns it; logs those that have not
  // received it by the deadline.
  //   kDeadlineExceeded  lists the missing tasks and the reasons
  //   any code           the status that was passed to OnRefused(), or the
  //   error of the last transport
  absl::StatusOr<FormedGroup> Run(
      absl::Time deadline,
      absl::FunctionRef<void(absl::string_view line)> report)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The reason for which a wait ended early.
  enum class Interruption { kNone, kTaskLeft, kRefused, kDeadline };

  struct Attempt {
    enum class Outcome {
      kFormed,
      kTransportFailed,
      kRetry,  // A task left, or plans changed.
      kOver,
    } outcome = Outcome::kRetry;
    absl::Status status;  // Why the group is not formed.
    FormedGroup group;
  };

  // Returns Options::failure.
  absl::Status SendFailure(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<FormedGroup> Lead(
      absl::Time deadline, absl::FunctionRef<void(absl::string_view)> report);
  std::optional<GroupPlan> MakePlan();
  // Chooses among the transports that have not failed.
  TransportChoice Choose() const;
  // Sends `why` to the tasks that are present, which ends their Run(), and
  // returns it.
  absl::Status GiveUp(const GroupPlan& plan, const absl::Status& why);
  Attempt LeadAttempt(const GroupPlan& plan, absl::Time deadline,
                      absl::FunctionRef<void(absl::string_view)> report);
  proto::PeerMessage Proposal(const GroupPlan& plan) const;
  void ExpectReplies(const GroupPlan& plan, proto::FormReply::Stage stage)
      ABSL_LOCKS_EXCLUDED(mutex_);
  Attempt CollectReplies(absl::Time deadline,
                         absl::FunctionRef<void(absl::string_view)> report)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<FormedGroup> Follow(
      absl::Time deadline, absl::FunctionRef<void(absl::string_view)> report);
  Attempt FollowProposal(const proto::PeerMessage& proposal,
                         absl::Time deadline,
                         absl::FunctionRef<void(absl::string_view)> report);
  absl::StatusOr<GroupPlan> PlanOf(const proto::PeerMessage& proposal) const;
  // Returns the leader's next command. If there is none, returns nullopt and
  // sets `attempt` to the reason.
  std::optional<proto::PeerMessage> NextCommand(
      absl::Time deadline, absl::FunctionRef<void(absl::string_view)> report,
      Attempt* attempt) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same for the attempt of `plan`. A command of another attempt ends it.
  std::optional<proto::PeerMessage> NextCommandOf(
      const GroupPlan& plan, absl::Time deadline,
      absl::FunctionRef<void(absl::string_view)> report, Attempt* attempt)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits until `condition` holds and returns kNone, or returns why the wait
  // ended early. `waiting_for` returns the subject of the reported line. Both
  // are evaluated under the lock.
  Interruption Await(const absl::Condition& condition, absl::Time deadline,
                     absl::FunctionRef<std::string()> waiting_for,
                     absl::FunctionRef<void(absl::string_view)> report)
      ABSL_LOCKS_EXCLUDED(mutex_);
  static Attempt Formed(
      GroupPlan plan, std::vector<std::unique_ptr<Communicator>> communicators);
  static Attempt NotFormed(Attempt::Outcome outcome, absl::Status status);
  Attempt Interrupted(Interruption interruption, absl::string_view subject)
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  std::string UnansweredTasks() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void SendToAll(const proto::PeerMessage& message);
  proto::PeerMessage Stamped(const GroupPlan& plan) const;

  const Options options_;
  PeerLinks* const links_;
  GroupTransport* const transport_;
  const OnPlan on_plan_;
  Clock* const clock_;
  const absl::Time started_;
  MissingTasks missing_;
  // State of the leader, used by Run() only: the last attempt's generation, the
  // transports that the tasks offer, and the errors of transports that failed,
  // by name.
  uint64_t generation_;
  std::vector<proto::TransportOffer> offers_;
  std::map<std::string, std::string> failures_;

  absl::Mutex mutex_;
  std::vector<bool> present_ ABSL_GUARDED_BY(mutex_);
  int missing_count_ ABSL_GUARDED_BY(mutex_);
  bool task_left_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status refused_ ABSL_GUARDED_BY(mutex_);
  // The ranks that have not received Options::failure yet.
  std::set<int> undelivered_ ABSL_GUARDED_BY(mutex_);
  // State of a member: the leader's last command that has not been handled yet.
  std::optional<proto::PeerMessage> command_ ABSL_GUARDED_BY(mutex_);
  // State of the leader: the attempt and stage whose replies it awaits, and the
  // replies received, by rank.
  uint64_t awaited_generation_ ABSL_GUARDED_BY(mutex_) = 0;
  proto::FormReply::Stage awaited_stage_ ABSL_GUARDED_BY(mutex_) =
      proto::FormReply::UNKNOWN;
  std::vector<std::optional<proto::FormReply>> replies_ ABSL_GUARDED_BY(mutex_);
  int reply_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_PEERS_FORMATION_H_
