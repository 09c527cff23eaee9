#ifndef COORDINATOR_CLUSTER_CONNECTION_H_
#define COORDINATOR_CLUSTER_CONNECTION_H_

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
#include "common/compute/variables/variable_store.h"
#include "common/core/base/clock.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/missing_tasks.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/exit_code.h"
#include "common/net/rpc/channel.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/network.h"
#include "coordinator/closure_dispatcher.h"
#include "coordinator/recoverable_store.h"
#include "coordinator/report_intake.h"
#include "coordinator/server_recovery.h"
#include "coordinator/server_watch.h"
#include "ps/client/partitioner.h"
#include "ps/client/placement.h"
#include "ps/client/remote_variable_store.h"

namespace muster {

// One job, as its coordinator holds it: the conversations with all workers and
// parameter servers, and the variables. Lasts from the first handshake to the
// end of the job.
//
// A lost parameter server is waited for, and training is rolled back to the
// newest checkpoint: see ServerRecovery. One that stays away ends the job:
// every wait returns an error that names the server, its incarnation and what
// it held.
//
// Thread-safe.
class ClusterConnection {
 public:
  struct Options {
    ClusterSpec cluster;
    TaskIdentity self;
    uint64_t seed = 0;
    // Closures that one worker runs at once.
    int closures_in_flight = 1;
    std::shared_ptr<const Partitioner> partitioner;
    PlacementPolicy placement = PlacementPolicy::kGreedyByBytes;
    absl::Duration startup_timeout = absl::Minutes(10);
    absl::Duration heartbeat_interval = absl::Milliseconds(500);
    // A worker or server silent for longer is lost.
    absl::Duration heartbeat_timeout = absl::Seconds(5);
    // One exchange with a parameter server.
    absl::Duration exchange_timeout = absl::Seconds(60);
    // Whether tensors may go through shared memory to servers of this host.
    bool shared_memory = true;
    int attempts_per_closure_max = 4;
    int64_t queued_closures_max = 256 * 1024;
    // After the loss of a parameter server.
    ServerRecovery::Options recovery;
  };

  // Waits for every worker and parameter server; `report` gets a line that
  // names the missing ones every few seconds. `network` and `clock` are
  // borrowed.
  //   kInvalidArgument     the cluster has no worker, or no parameter server
  //   kDeadlineExceeded    names those who never came, and why
  //   kFailedPrecondition  a task refused: it has another cluster in mind. All
  //                        tasks are told and end; exit code kUsage
  //   kAlreadyExists       another coordinator has the cluster, and was left it
  static absl::StatusOr<std::shared_ptr<ClusterConnection>> Open(
      const Options& options, Network* network, Clock* clock,
      const std::function<void(absl::string_view)>& report);

  ~ClusterConnection();

  ClusterConnection(const ClusterConnection&) = delete;
  ClusterConnection& operator=(const ClusterConnection&) = delete;

  const Options& options() const { return options_; }
  const std::string& job_id() const { return job_id_; }
  ClosureDispatcher& dispatcher() { return *dispatcher_; }
  // For whoever trains.
  VariableStore& variables() { return *store_; }
  ServerRecovery& recovery() { return *recovery_; }
  ServerWatch& servers() { return *watch_; }

  // Asks the servers what they hold, to be able to say what is lost with one.
  void NoteShards() ABSL_LOCKS_EXCLUDED(mutex_);

  // Lets every process of the job go: with status 0, or as others do when the
  // coordinator ends with `status` (ExitCodeOfOthers()). Those who cannot be
  // reached within a few seconds are logged. The second call does nothing.
  void EndJob(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  // "worker 0 localhost:20001 incarnation 6f1c02a9", one for each task.
  std::vector<std::string> DescribeTasks() const;

 private:
  ClusterConnection(const Options& options, Network* network, Clock* clock);

  ChannelOptions ChannelTo(TaskId task) const;
  // Tells `tasks` to exit, whatever their role is, and logs those that cannot
  // be told.
  void EndTasks(const std::vector<TaskId>& tasks, ExitCode exit_code,
                absl::string_view reason, const CallOptions& call);
  // For tasks that are there, after a start that failed.
  void GiveUpStart(const absl::Status& why);
  void StartDispatcher();
  void StartWatch();
  void StartRecovery() ABSL_LOCKS_EXCLUDED(mutex_);
  void OnServerChange() ABSL_LOCKS_EXCLUDED(mutex_);
  // Must not wait.
  FailureVerdict Judge(const absl::Status& status) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  Network* const network_;
  Clock* const clock_;
  const std::string job_id_;
  MissingTasks missing_;
  std::unique_ptr<ClosureDispatcher> dispatcher_;
  std::unique_ptr<ServerWatch> watch_;
  std::unique_ptr<RemoteVariableStore> variables_;
  std::unique_ptr<ServerRecovery> recovery_;
  std::unique_ptr<RecoverableStore> store_;

  mutable absl::Mutex mutex_;
  // Null until there is one.
  ServerRecovery* told_of_changes_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  // By server: "3 shards (1.2 MiB): dense/kernel/part_0, ...".
  std::vector<std::string> held_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COORDINATOR_CLUSTER_CONNECTION_H_
