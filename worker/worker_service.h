#ifndef WORKER_WORKER_SERVICE_H_
#define WORKER_WORKER_SERVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/runtime/executable.h"
#include "common/core/system/clock.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/coordinator_wait.h"
#include "common/net/rpc/bounded_log.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/service.h"
#include "common/net/rpc/tick_loop.h"
#include "common/net/status/status_report.h"
#include "ps/segment_intake.h"
#include "worker/graph_cache.h"
#include "worker/session_variables.h"
#include "worker/worker_session.h"

namespace muster {

namespace proto {
class JobEnd;
class SessionOpening;
}  // namespace proto

// The service of a worker. Serves one coordinator at a time and runs the
// closures that it sends.
//
// Each session of a coordinator is one stream. When the stream breaks or misses
// its heartbeats, the session and its state are dropped. The same coordinator
// may open another session within coordinator_grace; other coordinators are
// rejected until then. A coordinator that is replaced by a newer one of the
// same job, with a higher coordinator epoch, is rejected from then on. A
// coordinator announces the end of its job.
//
// Thread-safe.
class WorkerService {
 public:
  struct Options {
    TaskIdentity self;
    // The check of the server to which the methods are added. Borrowed.
    AdmissionCheck* admission_check = nullptr;
    ClusterSpec cluster;
    ExecutableOptions executable;
    // Time after its last message until a coordinator counts as lost, connected
    // or not; a connected one only after at least 2 s. Counted in ticks, so the
    // time during which this process was suspended does not count. If 0, a
    // coordinator is lost when it disconnects. A coordinator whose job another
    // one may continue can ask for a longer time
    // (SessionOpening.coordinator_return_timeout_ms).
    CoordinatorGrace coordinator_grace;
    // Size limits. The other fields are set by each session's opening.
    WorkerSession::Options session;
    // True if coordinators on this host may pass tensors through shared memory.
    bool shared_memory = true;
  };

  // Creates the access of task `self` to the variables of a job.
  using VariablesFactory = std::function<std::unique_ptr<SessionVariables>(
      const TaskIdentity& self, const SessionJob& job)>;

  // `ops`, `kernels` and `clock` are borrowed and must outlive the service.
  WorkerService(const Options& options, const OpRegistry* ops,
                const KernelRegistry* kernels, VariablesFactory variables,
                Clock* clock);
  ~WorkerService();

  WorkerService(const WorkerService&) = delete;
  WorkerService& operator=(const WorkerService&) = delete;

  // Registers the methods. `service` may not outlive this object.
  void AddTo(Service* service);

  struct WaitOptions {
    CoordinatorWait::Options coordinator;
    // If true, the loss of a coordinator ends AwaitJobEnd().
    bool exit_when_coordinator_lost = false;
  };

  // How a job ended.
  struct JobEnd {
    // The exit code for the processes of the job.
    int exit_code = 0;
    // Why this worker ends; empty if the job has succeeded.
    std::string reason;
  };

  // Blocks until a coordinator ends its job. While no coordinator is connected,
  // calls `report` with one line at every report interval, on the calling
  // thread.
  //   kDeadlineExceeded  no coordinator connected, or reconnected, in time;
  //                      exit code kRestartMe
  //   kUnavailable       the coordinator was lost and
  //                      exit_when_coordinator_lost is set; exit code
  //                      kRestartMe
  //   kInvalidArgument   a coordinator with another TF_CONFIG connected; exit
  //                      code kUsage
  //   kUnavailable       also: the device that runs closures is lost; the
  //                      message names it; exit code kRestartMe
  //   kCancelled         Stop() was called
  absl::StatusOr<JobEnd> AwaitJobEnd(
      const WaitOptions& options,
      const std::function<void(absl::string_view)>& report)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Accepts the next coordinator after the end of a job.
  void AcceptNextJob() ABSL_LOCKS_EXCLUDED(mutex_);

  // Releases the memory that coordinators share, which ends their Share
  // streams.
  void EndShares() { segments_.End(); }

  // Ends the session and AwaitJobEnd(). Does not block.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  bool has_coordinator() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Conversation;

  // The coordinator that this worker serves. All others are rejected.
  struct Owner {
    std::string job_id;
    std::string name;  // For messages.
    // How long this worker waits for it, or for another coordinator of the job,
    // to connect.
    absl::Duration grace;
    // Ticks since the coordinator disconnected.
    int away_ticks = 0;
  };

  // Makes `conversation` the current one and drops an earlier one of the same
  // job.
  //   kFailedPrecondition  the job has a newer coordinator
  //   kPermissionDenied  this worker serves another coordinator
  //   kUnavailable       the other coordinator disconnected and may reconnect,
  //                      or this worker is about to exit
  absl::Status Enter(std::shared_ptr<Conversation> conversation,
                     const proto::RequestIdentity& identity,
                     const proto::SessionOpening& opening)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status RefusalOf(absl::string_view job_id) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void Leave(Conversation* conversation, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Called in each tick without a conversation.
  void CountAbsence() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndJob(const proto::JobEnd& end) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends an idle worker after a coordinator with another TF_CONFIG has
  // connected.
  void OnClusterMismatch(const absl::Status& disagreement)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends AwaitJobEnd(): no closure can run in this process again.
  void NoteDeviceLost(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleEndTask(ReceivedMessage request, Responder responder)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void FetchResult(ReceivedMessage request, Responder responder)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes the loop wait for the closures of a conversation that has ended.
  void JoinSoon(std::shared_ptr<Conversation> conversation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sends heartbeats, and joins the threads of ended conversations, which may
  // block.
  absl::Time TakeTurn(const TickLoop::Turn& turn) ABSL_LOCKS_EXCLUDED(mutex_);
  void AddStatus(StatusReport* report) const ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasChanged() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || job_end_.has_value() || changed_;
  }

  const Options options_;
  const OpRegistry* const ops_;
  const KernelRegistry* const kernels_;
  const VariablesFactory variables_;
  Clock* const clock_;
  GraphCache graphs_;
  SegmentIntake segments_;
  // Limits the log: a rejected coordinator retries repeatedly.
  BoundedLog rejections_;

  mutable absl::Mutex mutex_;
  std::shared_ptr<Conversation> current_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Conversation>> dead_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // True if a coordinator has connected or disconnected since AwaitJobEnd()
  // last checked.
  bool changed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time changed_at_ ABSL_GUARDED_BY(mutex_);  // Time of that change.
  std::optional<Owner> owner_ ABSL_GUARDED_BY(mutex_);
  // Number of disconnections of a coordinator, and the reason of the last one.
  int lost_count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status lost_reason_ ABSL_GUARDED_BY(mutex_);
  // True if the last coordinator did not reconnect and no other has connected.
  bool is_coordinator_lost_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status disagreement_ ABSL_GUARDED_BY(mutex_);
  absl::Status device_lost_ ABSL_GUARDED_BY(mutex_);
  std::optional<JobEnd> job_end_ ABSL_GUARDED_BY(mutex_);

  // Time of the next tick. Used by the thread of the loop only.
  absl::Time next_tick_ = absl::InfinitePast();
  TickLoop loop_;
  const StatusSource status_;
};

}  // namespace muster

#endif  // WORKER_WORKER_SERVICE_H_
