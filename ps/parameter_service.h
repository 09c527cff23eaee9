#ifndef PS_PARAMETER_SERVICE_H_
#define PS_PARAMETER_SERVICE_H_

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/system/metrics.h"
#include "common/core/system/thread_pool.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/coordinator_wait.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/network.h"
#include "common/net/rpc/service.h"
#include "common/net/status/status_report.h"
#include "ps/checkpoint_handler.h"
#include "ps/copy_service.h"
#include "ps/log_keeper.h"
#include "ps/parameter_shard.h"
#include "ps/segment_intake.h"

namespace muster {

namespace proto {
class RequestIdentity;
class WatchEvent;
class WatchRequest;
}  // namespace proto

// Implements proto/parameter_server.proto with a ParameterShard. Validates
// every request, so that no request can crash the process.
//
// The first Create or SetOptimizer binds the server to the job of its sender.
// Requests of other jobs are rejected until Reset().
//
// Thread-safe.
class ParameterService {
 public:
  // A coordinator whose cluster differs from `cluster` is rejected. An empty
  // `cluster` accepts any. With `log`, restores the state of the process that
  // this one replaces, and keeps a log. `network` is borrowed; it leads to the
  // processes that hold copies.
  ParameterService(TaskIdentity self, const ParameterShard::Options& options,
                   ClusterSpec cluster = {},
                   const SegmentIntake::Options& segments = {},
                   const CheckpointHandler::Options& checkpoints = {},
                   const std::optional<LogKeeper::Options>& log = {},
                   Network* network = Network::Grpc());
  ~ParameterService();

  const Service& service() const { return service_; }
  AdmissionCheck& admission_check() { return admission_check_; }
  const TaskIdentity& self() const { return admission_check_.self(); }
  ParameterShard& shard() { return shard_; }
  SegmentIntake& segments() { return segments_; }
  // Identifies the state of this server (DescribeResponse.state_id).
  uint64_t state_id() const;
  // Removes the log: nothing of the state is needed any more.
  void EndLog() {
    if (log_ != nullptr) log_->End();
  }
  // Null if no log is kept.
  const LogKeeper* log() const { return log_.get(); }
  // Returns the status of the copy of this server's state, or of the copy that
  // this process holds.
  proto::CopyStatus copy_status() const { return copies_.status(); }
  // Answers that wait for the holder of a copy fail: this process ends.
  void EndCopies() { copies_.End(); }

  // Why AwaitEnd() returned.
  enum class End {
    kJobEnd,        // The coordinator ended the job.
    kDisagreement,  // A coordinator with another cluster connected.
    kStopped,       // Stop() or BeginEnd() was called in this process.
    // The coordinator disconnected and did not reconnect within the grace
    // period.
    kCoordinatorLost,
    // No coordinator connected in time, at first or after one was lost.
    kNoCoordinator,
    // The process that held a copy has taken over.
    kReplaced,
  };
  struct Outcome {
    End end = End::kStopped;
    int exit_code = 0;   // For kJobEnd: the exit code from the coordinator.
    std::string reason;  // For kJobEnd: why the job failed; empty on success.
    // True if the coordinator has ended the job, also for kStopped: the state
    // of this server is not needed any more.
    bool has_job_ended = false;
    absl::Status why;  // For the other ends except kStopped.
  };

  // Blocks until there is a reason to stop. While no coordinator is connected,
  // logs for which task it waits; `coordinator` limits the wait. A coordinator
  // that has sent nothing for `coordinator_grace` is lost, connected or not; a
  // connected one only after at least 2 s. If another coordinator of the job
  // may continue it, the server waits at least as long as the lost one has
  // asked for (WatchRequest.coordinator_return_timeout_ms). Silence is counted
  // in ticks, so the time during which this process was suspended does not
  // count.
  Outcome AwaitEnd(const CoordinatorWait::Options& coordinator,
                   CoordinatorGrace coordinator_grace)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // As Stop(), but first waits until the coordinator has saved the variables of
  // this server and allows it to end. Stops immediately if no coordinator is
  // connected.
  void BeginEnd() ABSL_LOCKS_EXCLUDED(mutex_);

  // Drops the job and its variables, so that another job can use the server.
  void Reset() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Watcher;

  void AddMetrics(MetricSink* sink) const;
  void AddStatus(StatusReport* report) const ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleDescribe(ReceivedMessage message, Responder responder);
  void HandleCreate(ReceivedMessage message, Responder responder);
  void HandleExchange(ReceivedMessage message, Responder responder);
  void HandleSetOptimizer(ReceivedMessage message, Responder responder);
  void HandleAssignAverages(ReceivedMessage message, Responder responder);
  void HandleEndTask(ReceivedMessage message, Responder responder);
  absl::StatusOr<Message> Create(const ReceivedMessage& message);
  absl::StatusOr<Message> SetOptimizer(const ReceivedMessage& message);
  absl::StatusOr<Message> Exchange(const ReceivedMessage& message);
  absl::Status CheckCluster(const proto::WatchRequest& request) const;
  // Ends the server if it has no job and a coordinator with another TF_CONFIG
  // has connected.
  void OnClusterMismatch(const absl::Status& disagreement)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_ending() ABSL_LOCKS_EXCLUDED(mutex_);
  // Binds this server to the job of the caller, and records it in the log.
  absl::Status AdoptJob(const proto::RequestIdentity& identity)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Records the job in the log, if this server has one.
  absl::Status NoteJob(const proto::RequestIdentity& identity)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void SetLogFields(proto::WatchEvent* event) const;
  bool has_copies() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The state is kept as copies on other servers, and not in a log.
  void UseCopies() ABSL_LOCKS_EXCLUDED(mutex_);
  CopyService::Parts CopyParts(Network* network);
  proto::ServerLogJob JobOf(const proto::RequestIdentity& identity) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnReplaced(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  void LetGo() ABSL_LOCKS_EXCLUDED(mutex_);
  // Records a message from the coordinator on `stream`.
  void OnCoordinatorMessage(const std::shared_ptr<Stream>& stream,
                            const proto::WatchRequest& request)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnCoordinatorDisconnected(const std::shared_ptr<Stream>& stream)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Parts of AwaitEnd(). AwaitOwnCoordinator() limits the wait for the
  // coordinator of the job that was restored; without it the job is dropped.
  void AwaitOwnCoordinator(CoordinatorGrace coordinator_grace)
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<Outcome> AwaitCoordinator(
      const CoordinatorWait::Options& coordinator)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Outcome AwaitLoss(const std::string& coordinator,
                    CoordinatorGrace coordinator_grace)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ClusterSpec cluster_;
  const absl::Time start_;
  AdmissionCheck admission_check_;
  ParameterShard shard_;
  const std::unique_ptr<LogKeeper> log_;  // Null: none.
  SegmentIntake segments_;
  Service service_;

  mutable absl::Mutex mutex_;
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;  // BeginEnd() was called.
  bool is_ended_ ABSL_GUARDED_BY(mutex_) = false;
  Outcome outcome_ ABSL_GUARDED_BY(mutex_);
  // The open streams of coordinators. If there are several, all but one are
  // about to end.
  std::set<std::shared_ptr<Stream>> coordinators_ ABSL_GUARDED_BY(mutex_);
  int64_t silent_ticks_ ABSL_GUARDED_BY(mutex_) = 0;  // Ticks without a message
                                                      // from any of them.
  bool had_coordinator_ ABSL_GUARDED_BY(mutex_) = false;
  // How long the last coordinator has asked to wait for another one.
  int64_t coordinator_return_timeout_ms_ ABSL_GUARDED_BY(mutex_) = 0;
  int lost_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool has_copies_ ABSL_GUARDED_BY(mutex_) = false;

  // Computing initial values takes long; exchanges continue meanwhile. Declared
  // after the members that it uses, so that it stops before they are destroyed.
  ThreadPool create_pool_;
  CheckpointHandler checkpoints_;
  CopyService copies_;

  const MetricSource metrics_;
  const StatusSource status_;
};

}  // namespace muster

#endif  // PS_PARAMETER_SERVICE_H_
