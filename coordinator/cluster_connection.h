#ifndef COORDINATOR_CLUSTER_CONNECTION_H_
#define COORDINATOR_CLUSTER_CONNECTION_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/system/clock.h"
#include "common/core/system/metrics.h"
#include "common/core/tensor/tensor.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/missing_tasks.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/exit_code.h"
#include "common/net/process/job_control.h"
#include "common/net/rpc/channel.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/network.h"
#include "common/net/status/status_report.h"
#include "common/net/status/trace_collector.h"
#include "coordinator/closure_id_reservation.h"
#include "coordinator/recoverable_store.h"
#include "coordinator/report_intake.h"
#include "coordinator/server_copies.h"
#include "coordinator/server_recovery.h"
#include "coordinator/server_watch.h"
#include "coordinator/shared_batches.h"
#include "coordinator/training_journal.h"
#include "coordinator/update_rounds.h"
#include "ps/client/partitioner.h"
#include "ps/client/placement.h"
#include "ps/client/remote_variable_store.h"

namespace muster {

namespace proto {
class TaskFailure;
}  // namespace proto

class ClosureDispatcher;

// The connection of a coordinator to the cluster for one job: the sessions with
// all workers and parameter servers, and the variables. Lasts until the end of
// the job.
//
// After the loss of a parameter server, waits for its restart and rolls
// training back to the newest checkpoint: see ServerRecovery. If the server
// does not restart in time, the job ends: every blocked call returns an error
// that names the server, its incarnation and its variables.
//
// Thread-safe.
class ClusterConnection {
 public:
  struct Options {
    ClusterSpec cluster;
    TaskIdentity self;
    // Names the job; empty for a new job.
    std::string job_id;
    // The number of this coordinator among those of the job, from 1. Workers
    // and servers refuse coordinators with a lower number.
    uint64_t coordinator_epoch = 1;
    ClosureIdReservation::Options closure_ids;
    // The generation of exchanges with the servers at the start.
    uint64_t generation = 0;
    // The folder of the journal, from which a later coordinator can continue
    // the job. The journal of an earlier one then replaces job_id,
    // coordinator_epoch, closure_ids, generation and seed. Empty: none.
    std::string journal_dir;
    // How long workers and servers wait for a later coordinator, if there is a
    // journal.
    absl::Duration coordinator_return_timeout = absl::Minutes(2);
    uint64_t seed = 0;
    // Closures that one worker runs concurrently.
    int closures_in_flight = 1;
    std::shared_ptr<const Partitioner> partitioner;
    PlacementPolicy placement = PlacementPolicy::kGreedyByBytes;
    absl::Duration startup_timeout = absl::Minutes(10);
    // The reason why this coordinator cannot train. Open() waits a few seconds
    // for the tasks, tells the connected ones, and returns this error.
    absl::Status failure;
    // The number of workers for which the start waits; 0 for all.
    int worker_count_min = 0;
    absl::Duration heartbeat_interval = absl::Milliseconds(500);
    // A worker or server that is silent for longer counts as lost.
    absl::Duration heartbeat_timeout = absl::Seconds(5);
    // Timeout of one exchange with a parameter server.
    absl::Duration exchange_timeout = absl::Seconds(60);
    // If true, tensors may pass through shared memory to tasks on this host.
    bool shared_memory = true;
    int attempts_per_closure_max = 4;
    int64_t queued_closures_max = 256 * 1024;
    // Number of ps tasks that have the state of each server: 1 or 2.
    int server_copy_count = 1;
    // The rounds of synchronous training; by default it is asynchronous.
    UpdateRounds::Options rounds;
    // Options for the loss of a parameter server.
    ServerRecovery::Options recovery;
  };

  // Blocks until every parameter server and the required number of workers are
  // connected. Calls `report` every few seconds with a line that names the
  // missing tasks.
  // `network` and `clock` are borrowed.
  //   kInvalidArgument     the cluster has no worker or no parameter server, or
  //                        an option is out of range
  //   kDeadlineExceeded    names the tasks that did not connect, and why; exit
  //                        code kRestartMe. The other tasks are told, and end
  //                        with ExitCodeOfOthers()
  //   kFailedPrecondition  a task has another cluster configuration. All tasks
  //                        are told to end; exit code kUsage
  //   kAlreadyExists       the cluster serves another coordinator and was left
  //                        unchanged; exit code kRestartMe
  //   kUnavailable, kFailedPrecondition
  //                        a parameter server was lost or replaced after it
  //                        had connected; exit code kRestartMe
  //   kAborted             the tasks work for an earlier coordinator whose
  //                        training cannot be continued with them. All tasks
  //                        are told to end with kRestartMe, as this one. If
  //                        the job had succeeded, they are told to end with
  //                        kOk, and this error has no exit code
  //   others               the journal cannot be read or written
  //   others               Options::failure
  static absl::StatusOr<std::shared_ptr<ClusterConnection>> Open(
      const Options& options, Network* network, Clock* clock,
      const std::function<void(absl::string_view)>& report);

  ~ClusterConnection();

  ClusterConnection(const ClusterConnection&) = delete;
  ClusterConnection& operator=(const ClusterConnection&) = delete;

  const Options& options() const { return options_; }
  const std::string& job_id() const { return job_id_; }
  ClosureDispatcher& dispatcher() { return *dispatcher_; }
  // The variables for training, with snapshots and rollback.
  VariableStore& variables() { return *store_; }
  // As RecoverableStore::GradientCounts().
  absl::StatusOr<std::vector<int64_t>> GradientCounts(
      absl::Span<const std::string> names) {
    return store_->GradientCounts(names);
  }
  ServerRecovery& recovery() { return *recovery_; }
  ServerCopies& servers() { return *servers_; }
  ServerWatch& server_watch() { return *watch_; }
  TrainingJournal& journal() { return *journal_; }

  // Returns a copy of `tensor`, an argument of closures, in memory that workers
  // on this host read, or `tensor` itself if there is no such memory. The first
  // call offers the memory to the workers and blocks until they respond.
  Tensor ShareWithWorkers(const Tensor& tensor) ABSL_LOCKS_EXCLUDED(mutex_);

  // Asks the servers for their shards, to name them in the error after a loss.
  void NoteShards() ABSL_LOCKS_EXCLUDED(mutex_);

  // Adds all workers and parameter servers to `trace`.
  void AddToTrace(TraceCollector* trace) const;

  // Ends training early: every blocked call returns an error. Does not block.
  void Interrupt();

  // Returns the status with which the process ends if training ended with
  // `status`. Has exit code kRestartMe if the job was handed over. Describes
  // the loss if a signal ended training while a parameter server was lost. Has
  // exit code kRestartMe if training failed because no worker is connected, or
  // not every parameter server, or because a parameter server could not be
  // reached or was replaced.
  absl::Status WithLoss(const absl::Status& status) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends every process of the job: with status 0, or with ExitCodeOfOthers() if
  // the coordinator ends with an error. Logs tasks that cannot be reached
  // within a few seconds. Idempotent. Has no effect on a job that was handed
  // over, unless training ended with success.
  void EndJob(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns a line for each task, such as "worker 0 localhost:20001 incarnation
  // 6f1c02a9d2e4b713".
  std::vector<std::string> DescribeTasks() const;

 private:
  ClusterConnection(const Options& options,
                    std::unique_ptr<TrainingJournal> journal, Network* network,
                    Clock* clock);

  // Opens the journal, and sets the options that it replaces.
  static absl::StatusOr<std::unique_ptr<TrainingJournal>> OpenJournal(
      Options* options, Clock* clock);
  // Decides how this coordinator begins, with connected servers, and records
  // it. Returns the generation of exchanges with the servers.
  absl::StatusOr<uint64_t> Adopt();
  // Opens the variables and starts what uses them.
  absl::Status OpenVariables(uint64_t generation);
  // See JobControl::RequestDrain().
  void Drain(TaskId task, JobControl::Done done);
  // Ends this process, and lets the other tasks wait for the next coordinator.
  //   kFailedPrecondition  it could not continue the job
  absl::Status HandOver() ABSL_LOCKS_EXCLUDED(mutex_);
  void AddMetrics(MetricSink* sink) const ABSL_LOCKS_EXCLUDED(mutex_);
  void AddStatus(StatusReport* report) const ABSL_LOCKS_EXCLUDED(mutex_);
  ChannelOptions ChannelTo(TaskId task) const;
  static std::vector<TaskId> WorkersAndServers(const ClusterSpec& cluster);
  // Tells each task over its channel to exit. Returns the tasks that could not
  // be told, each with the reason.
  static std::map<TaskId, absl::Status> EndTasks(
      const std::map<TaskId, Channel*>& tasks, ExitCode exit_code,
      absl::string_view reason, const CallOptions& call);
  // The same over new connections, for tasks that may not be connected yet.
  std::map<TaskId, absl::Status> ConnectAndEndTasks(
      const std::vector<TaskId>& tasks, ExitCode exit_code,
      absl::string_view reason, const CallOptions& call);
  // Waits for the tasks that the start needs. If that fails, or if this
  // coordinator has a failure, tells the connected tasks.
  absl::Status AwaitTasks(const std::function<void(absl::string_view)>& report);
  // True if the task has refused this coordinator. Such a task exits by itself.
  bool HasRefused(TaskId task) const;
  // Ends the connected tasks after a failed start; ends all tasks if their
  // configurations differ.
  void GiveUpStart(const absl::Status& why);
  void StartDispatcher();
  void StartWatch();
  void StartRecovery(uint64_t generation) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnServerChange() ABSL_LOCKS_EXCLUDED(mutex_);
  // Must not block.
  FailureVerdict Judge(const absl::Status& status) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // True if the parameter server that `failure` names is being replaced, or the
  // process is not the one that has its variables. Must not block.
  bool IsOfLostServer(const proto::TaskFailure& failure) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // True if training that ended with `status` may succeed after a restart,
  // because it lost a parameter server.
  bool EndedByLostServer(const absl::Status& status) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // For tasks that may not have started yet.
  static constexpr absl::Duration kEndAtStartTimeout = absl::Seconds(10);

  const Options options_;
  Network* const network_;
  Clock* const clock_;
  const std::string job_id_;
  MissingTasks missing_;
  std::once_flag batches_offered_;
  std::unique_ptr<SharedBatches> batches_;  // Null if no tensors are shared.
  std::unique_ptr<ClosureDispatcher> dispatcher_;
  std::unique_ptr<ServerWatch> watch_;
  std::unique_ptr<ServerCopies> servers_;
  std::unique_ptr<RemoteVariableStore> variables_;
  std::unique_ptr<ServerRecovery> recovery_;
  std::unique_ptr<RecoverableStore> store_;
  // Destroyed before the dispatcher, which its thread uses.
  std::unique_ptr<TrainingJournal> journal_;

  mutable absl::Mutex mutex_;
  // Null until StartWatch(), and until StartRecovery().
  ServerCopies* servers_for_changes_ ABSL_GUARDED_BY(mutex_) = nullptr;
  ServerRecovery* recovery_for_changes_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_handing_over_ ABSL_GUARDED_BY(mutex_) = false;
  // By server: "3 shards (1.2 MiB): dense/kernel/part_0, ...".
  std::vector<std::string> held_ ABSL_GUARDED_BY(mutex_);

  // Destroyed before the members that they read.
  std::unique_ptr<const MetricSource> metrics_source_;
  std::unique_ptr<const StatusSource> status_source_;
};

}  // namespace muster

#endif  // COORDINATOR_CLUSTER_CONNECTION_H_
