#ifndef COMMON_NET_COLLECTIVES_PEERS_PEER_GROUP_H_
#define COMMON_NET_COLLECTIVES_PEERS_PEER_GROUP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/system/clock.h"
#include "common/core/system/metrics.h"
#include "common/core/system/wait_line.h"
#include "common/net/cluster/cluster_config.h"
#include "common/net/cluster/task_id.h"
#include "common/net/collectives/communication_implementation.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/peers/group_communicator.h"
#include "common/net/collectives/peers/group_error.h"
#include "common/net/collectives/peers/group_life.h"
#include "common/net/collectives/peers/job_digest.h"
#include "common/net/collectives/peers/peer_listener.h"
#include "common/net/collectives/transports/group_plan.h"
#include "common/net/collectives/transports/group_transport.h"
#include "common/net/collectives/transports/transport.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/network.h"
#include "common/net/rpc/service.h"
#include "common/net/status/status_report.h"

namespace muster {

class Formation;
class HangWatch;
class PeerLinks;
struct FormedGroup;

// One task's membership in the group of all tasks of a synchronous cluster. The
// tasks connect, compare their configurations, monitor each other, and leave
// together.
//
// The task of rank 0 is the chief, or worker 0 if there is no chief. The other
// ranks are the workers by index. Replica i of the task of rank t has rank t *
// replicas_per_task + i.
//
//   ASSIGN_OR_RETURN(auto group, PeerGroup::Join(options, network, clock));
//   ... on one thread for each replica i, collectives of group->communicator(i)
//   RETURN_IF_ERROR(group->Leave(status, absl::Minutes(10)));
//
// Guarantees:
// - All processes of a group agree about the cluster, the replicas and the job.
//   Tasks may start in any order.
// - If a task is killed, stopped or disconnected, the collectives of all others
//   end within heartbeat_timeout plus two intervals, with an error that names
//   this task and the task that detected the loss. If a task fails, they end
//   with its error. Each task returns the first cause that it learns of.
// - If packets between two tasks are dropped for less than heartbeat_timeout,
//   the group continues, provided that TCP retransmits them in time. TCP may
//   wait for as long as the outage lasted before it retransmits.
// - A restarted process is not a member of a group that was formed before.
//
// Thread-safe, except for the communicators.
class PeerGroup : private PeerListener {
 public:
  struct Options {
    ClusterConfig config;
    TaskIdentity identity;
    std::string listen_address;  // "host:port".
    int replicas_per_task = 1;
    JobDigest digest;

    // The means that transports may use. gRPC may always be used.
    TransportSettings transports;

    // Selects transports. The leader's value is used.
    CommunicationImplementation implementation =
        CommunicationImplementation::kAuto;
    // If true, Join() fails if no transport of `implementation` fits. If false,
    // RING is used instead, and the start line says why. The leader's value is
    // used.
    bool implementation_is_required = false;

    // The number of the view: the set of tasks that form the group. 0 stands
    // for all tasks of the configured cluster. If it is higher, `config` lists
    // the tasks of this view, and numbers of workers may be missing. Tasks of
    // different views do not join; one that finds a later view before its group
    // is formed ends with kLeftBehind.
    uint64_t view = 0;
    // The generation of this task's earlier group. This group gets a higher
    // one.
    uint64_t last_generation = 0;
    // If true, Join() ends if a task says that the group was formed without
    // this process (kLeftBehind). If false, waits for that group's end.
    bool ends_when_closed = false;

    absl::Duration startup_timeout = absl::Minutes(10);
    // Why this task cannot train, if it cannot. Join() sends it to the other
    // tasks, which need not have the same job, and returns it. Tasks that do
    // not connect before the timeout are logged.
    absl::Status failure;
    absl::Duration heartbeat_interval = absl::Milliseconds(250);
    absl::Duration heartbeat_timeout = absl::Milliseconds(2250);
    absl::Duration hang_report_interval = absl::Seconds(30);
    // After this time, a waiting task first reports for which tasks it waits.
    absl::Duration report_interval = absl::Seconds(5);
    // Time limit for one transport to connect all ranks.
    absl::Duration connect_timeout = absl::Seconds(10);

    // Adds further methods to this task's server.
    std::function<void(Service*)> add_methods;
    // Receives every line that the group reports. By default, lines are logged.
    std::function<void(absl::string_view line)> report;
  };

  // Connects to all other tasks and forms a group with them. `network` and
  // `clock`, which runs with Clock::Real(), are borrowed.
  //   kInvalidArgument     the cluster, the task or the options are invalid
  //   kUnavailable         the listen address is taken or not this machine's
  //   kFailedPrecondition  a task disagrees (GroupErrorKind::kDisagreement), or
  //                        another process runs as this task (kDuplicateTask)
  //   kUnimplemented       the implementation is required, and no transport of
  //                        it fits; says what is missing on which rank
  //   kDeadlineExceeded    names the missing tasks and the reasons (kPeerLost).
  //                        The leader sends the error to the tasks that are
  //                        present
  //   any code             Options::failure; or with kLeftBehind, see
  //                        Options::view and ends_when_closed
  //
  // After an error, sets `missing`, unless it is null, to the tasks that were
  // not connected.
  static absl::StatusOr<std::unique_ptr<PeerGroup>> Join(
      const Options& options, Network* network, Clock* clock,
      std::vector<TaskId>* missing = nullptr);

  // If the task has not left, it ends the group with an error.
  ~PeerGroup() override;

  PeerGroup(const PeerGroup&) = delete;
  PeerGroup& operator=(const PeerGroup&) = delete;

  int task_rank() const;
  int task_count() const;
  int replica_count() const {
    return task_count() * options_.replicas_per_task;
  }
  uint64_t generation() const { return plan_.generation; }
  // The leader's decision, the same for all tasks.
  const GroupPlan& plan() const { return plan_; }
  // The address on which this task listens, with the actual port.
  std::string address() const { return server_->address(); }

  // The communicator of a replica of this task. Its errors name tasks, and end
  // the whole group.
  Communicator* communicator(int local_replica) const {
    return communicators_[local_replica].get();
  }

  // "2 workers, 2 replicas; RING over shared memory".
  std::string Describe() const;

  // Sets the activity of this task between collectives, for the reports of
  // tasks that wait for it. `activity` lives as long as the process.
  void NoteActivity(const char* activity, uint64_t step);

  // Ends the group because of an error of this task, which is not OK. Does not
  // wait.
  void Fail(const absl::Status& status) { life_.Fail(status); }

  // The error that ended the group; OK while it has not ended. Carries a
  // GroupErrorKind unless the error is this task's own.
  absl::Status cause() const { return life_.cause(); }

  // Leaves the group. If `status` is OK, waits until all other tasks leave,
  // too, so that no task considers one that finishes early as lost. If `status`
  // is an error, ends the group with it and waits a moment for the others to
  // receive it. If the group has ended, returns the first cause, or `status` if
  // that is the cause as a collective returned it.
  //   kDeadlineExceeded    names the tasks that have not left
  absl::Status Leave(const absl::Status& status, absl::Duration timeout);

  // Stops listening and ends all connections, so that this task can join
  // another group at the same address. Ends the group with an error if the task
  // has not left. The communicators remain and return errors.
  // Faster if no communicator is left: then destroy the group.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

  // A task that this task cannot reach.
  struct Absence {
    TaskId task;
    // True if nothing was heard of the task for the heartbeat timeout, so that
    // it may run. False if its process has ended its connections.
    bool is_silent = false;
  };
  // Returns the tasks that are lost, and those whose own failure has ended the
  // group.
  std::vector<Absence> Absences() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  PeerGroup(const Options& options, Network* network, Clock* clock);

  static absl::Status CheckOptions(const Options& options);
  absl::Status Form();
  void Disconnect() ABSL_LOCKS_EXCLUDED(mutex_);
  void Adopt(FormedGroup group);
  // Checks that this task has what a required implementation needs.
  //   kUnimplemented  says what is missing
  static absl::Status CheckImplementation(const Options& options);
  absl::Status Explain(absl::string_view attempted,
                       const CollectiveProgress& progress,
                       const absl::Status& status);

  struct PeerState {
    TaskStatus::State state = TaskStatus::State::kConnecting;
    absl::Time since;
    std::string problem;
    bool is_silent = false;  // As Absence.
  };
  std::vector<TaskId> MissingTasks() const ABSL_LOCKS_EXCLUDED(mutex_);
  void SetState(int rank, TaskStatus::State state, absl::string_view problem)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void AddMetrics(MetricSink* sink) const ABSL_LOCKS_EXCLUDED(mutex_);
  void AddStatus(StatusReport* report) const ABSL_LOCKS_EXCLUDED(mutex_);

  void OnPresent(int rank) override;
  void OnMissing(int rank, absl::string_view reason) override;
  void OnLost(int rank, const absl::Status& why) override;
  void OnRefused(const absl::Status& why) override;
  void OnFailureDelivered(int rank) override;
  void OnMessage(int rank, const proto::PeerMessage& message) override;
  void OnTick() override;

  void Report(absl::string_view line) const;
  // Returns a function that reports the lines of one wait. Borrows `wait`.
  std::function<void(absl::string_view)> WaitReport(WaitLine* wait) const;

  const Options options_;
  Network* const network_;
  Clock* const clock_;
  AdmissionCheck admission_check_;
  Service methods_;
  const std::unique_ptr<PeerLinks> links_;
  GroupLife life_;
  const std::unique_ptr<HangWatch> hangs_;
  GroupTransport transport_;
  const std::unique_ptr<Formation> formation_;
  GroupPlan plan_;  // Constant after Join(), as is the rest.
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::unique_ptr<Server> server_;

  mutable absl::Mutex mutex_;
  bool has_left_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_disconnected_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_formed_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<PeerState> states_ ABSL_GUARDED_BY(mutex_);  // By rank.
  int64_t lost_count_ ABSL_GUARDED_BY(mutex_) = 0;

  // Read all of the above.
  const MetricSource metrics_source_;
  const StatusSource status_source_;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_PEERS_PEER_GROUP_H_
