#ifndef WORKER_WORKER_SERVICE_H_
#define WORKER_WORKER_SERVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
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
#include "common/core/base/clock.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/coordinator_wait.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/service.h"
#include "worker/graph_cache.h"
#include "worker/session_variables.h"
#include "worker/worker_session.h"

namespace muster {

// A worker: lets one coordinator in at a time and runs what it sends.
//
// A conversation that breaks, or falls silent, is dropped together with what it
// had brought. Its coordinator may open the next one within coordinator_grace;
// until then no other coordinator is let in. At the end of its job a
// coordinator says so.
//
// Thread-safe.
class WorkerService {
 public:
  struct Options {
    TaskIdentity self;
    ClusterSpec cluster;
    ExecutableOptions executable;
    // How long a coordinator that broke off may take to come back before it is
    // lost. Counted in ticks, so a worker that was stopped and goes on still
    // waits that long.
    absl::Duration coordinator_grace = absl::ZeroDuration();
    // Size limits; the rest of it comes with each session.
    WorkerSession::Options session;
  };

  // The way of process `self` to the variables of one job, which is in this
  // generation.
  using VariablesFactory = std::function<std::unique_ptr<SessionVariables>(
      const TaskIdentity& self, absl::string_view job_id, uint64_t generation)>;

  // `ops`, `kernels` and `clock` are borrowed.
  WorkerService(const Options& options, const OpRegistry* ops,
                const KernelRegistry* kernels, VariablesFactory variables,
                Clock* clock);
  ~WorkerService();

  WorkerService(const WorkerService&) = delete;
  WorkerService& operator=(const WorkerService&) = delete;

  // Adds the methods; `service` may not outlive this object.
  void AddTo(Service* service);

  struct WaitOptions {
    CoordinatorWait::Options coordinator;
    // Ends with the first coordinator that is lost.
    bool exit_when_coordinator_lost = false;
  };

  // How a coordinator has ended its job.
  struct JobEnd {
    // What the processes of the job are to exit with.
    int exit_code = 0;
    std::string reason;  // Empty where the job is done.
  };

  // Waits until a coordinator has ended its job. While there is no coordinator,
  // `report` gets a line at every report interval, on this thread.
  //   kDeadlineExceeded  no coordinator came, or came back, in time; the latter
  //                      has exit code kRestartMe
  //   kUnavailable       the coordinator was lost, and that ends this process,
  //                      with exit code kRestartMe
  //   kInvalidArgument   a coordinator came whose TF_CONFIG disagrees; exit
  //                      code kUsage
  //   kCancelled         Stop() was called
  absl::StatusOr<JobEnd> AwaitJobEnd(
      const WaitOptions& options,
      const std::function<void(absl::string_view)>& report)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // After the end of a job: lets the next coordinator in.
  void AcceptNextJob() ABSL_LOCKS_EXCLUDED(mutex_);

  // Drops the conversation. Returns at once.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  bool has_coordinator() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Conversation;

  // The coordinator that this worker works for; no other is let in.
  struct Owner {
    std::string job_id;
    std::string name;  // For people.
    // Since it broke off.
    int away_ticks = 0;
  };

  // Makes `conversation` the current one, in the place of another of its job.
  //   kPermissionDenied  this worker works for another coordinator
  //   kUnavailable       the other coordinator broke off and may come back; or
  //                      this worker is about to exit
  absl::Status Enter(std::shared_ptr<Conversation> conversation,
                     const proto::RequestIdentity& identity,
                     absl::string_view coordinator) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status RefusalOf(absl::string_view job_id) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void Leave(Conversation* conversation, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Once in each tick without a conversation.
  void CountAbsence() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndJob(const proto::JobEnd& end) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends an idle worker that a coordinator with another TF_CONFIG has dialled.
  void NoteDisagreement(const absl::Status& disagreement)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleEndTask(ReceivedMessage request, Responder responder)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void FetchResult(ReceivedMessage request, Responder responder)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Heartbeats, and the burial of conversations, whose threads take a while.
  void TickLoop() ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasChanged() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || job_end_.has_value() || changed_;
  }
  bool IsStopping() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !dead_.empty();
  }

  const Options options_;
  const OpRegistry* const ops_;
  const KernelRegistry* const kernels_;
  const VariablesFactory variables_;
  Clock* const clock_;
  GraphCache graphs_;

  mutable absl::Mutex mutex_;
  std::shared_ptr<Conversation> current_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Conversation>> dead_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Coordinators came or went since AwaitJobEnd() looked.
  bool changed_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Owner> owner_ ABSL_GUARDED_BY(mutex_);
  // Times that a coordinator broke off, and why the last one did.
  int lost_count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status lost_reason_ ABSL_GUARDED_BY(mutex_);
  // The last one did not come back, and no other has come.
  bool is_deserted_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status disagreement_ ABSL_GUARDED_BY(mutex_);
  std::optional<JobEnd> job_end_ ABSL_GUARDED_BY(mutex_);

  std::thread ticker_;  // Constant after construction.
};

}  // namespace muster

#endif  // WORKER_WORKER_SERVICE_H_
