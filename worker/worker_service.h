#ifndef WORKER_WORKER_SERVICE_H_
#define WORKER_WORKER_SERVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
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
// had brought; the coordinator, or a new one, opens the next. At the end of its
// job a coordinator says so.
//
// Thread-safe.
class WorkerService {
 public:
  struct Options {
    TaskIdentity self;
    ClusterSpec cluster;
    ExecutableOptions executable;
    // Size limits; the rest of it comes with each session.
    WorkerSession::Options session;
  };

  // The way of process `self` to the variables of one job, which is in this
  // generation.
  using VariablesFactory = std::function<std::unique_ptr<SessionVariables>(
      const TaskIdentity& self, absl::string_view job_id, uint64_t generation)>;

  // `door`, `ops`, `kernels` and `clock` are borrowed.
  WorkerService(const Options& options, Door* door, const OpRegistry* ops,
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

  // Waits until a coordinator has ended its job, and returns what the processes
  // of the job are to exit with. While there is no coordinator, `report` gets a
  // line at every report interval, on this thread.
  //   kDeadlineExceeded  no coordinator came, or came back, in time
  //   kUnavailable       the coordinator was lost, and that ends this process
  //   kCancelled         Stop() was called
  absl::StatusOr<int> AwaitJobEnd(
      const WaitOptions& options,
      const std::function<void(absl::string_view)>& report)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Drops the conversation. Returns at once.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  bool has_coordinator() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Conversation;

  // Makes `conversation` the current one, in the place of another of its job.
  absl::Status Enter(std::shared_ptr<Conversation> conversation,
                     const proto::RequestIdentity& identity)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Leave(Conversation* conversation, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void EndJob(int exit_code) ABSL_LOCKS_EXCLUDED(mutex_);
  void FetchResult(ReceivedMessage request, Responder responder)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Heartbeats, and the burial of conversations, whose threads take a while.
  void TickLoop() ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasChanged() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || job_ended_ || changed_;
  }
  bool IsStopping() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !dead_.empty();
  }

  const Options options_;
  Door* const door_;
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
  int lost_count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status lost_reason_ ABSL_GUARDED_BY(mutex_);
  bool job_ended_ ABSL_GUARDED_BY(mutex_) = false;
  int exit_code_ ABSL_GUARDED_BY(mutex_) = 0;

  std::thread ticker_;  // Constant after construction.
};

}  // namespace muster

#endif  // WORKER_WORKER_SERVICE_H_
