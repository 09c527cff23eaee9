#ifndef COORDINATOR_WORKER_SESSIONS_H_
#define COORDINATOR_WORKER_SESSIONS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/core/base/backoff.h"
#include "common/core/system/clock.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/missing_tasks.h"
#include "common/net/cluster/task_id.h"
#include "common/net/rpc/reconnecting_stream.h"
#include "common/net/status/status_report.h"
#include "coordinator/closure_queue.h"
#include "coordinator/worker_record.h"

namespace muster {

namespace proto {
class SessionAcceptance;
}  // namespace proto

// The coordinator's sessions with its workers: which are open, lost, refused,
// paused or over. Tells the queue which workers take closures, and the log what
// becomes of them.
//
// Not thread-safe. Waits for nothing.
class WorkerSessions {
 public:
  struct Options {
    // A worker silent for longer is lost, whatever its connection says.
    absl::Duration heartbeat_timeout;
    // For the answer to an opening.
    absl::Duration handshake_timeout;
    // How long a worker that cannot reach a parameter server gets nothing.
    BackoffOptions retry_pause;
    // Between two log lines about that, for each worker.
    absl::Duration trouble_report_interval;
  };

  // `queue`, `missing` and `clock` are borrowed.
  WorkerSessions(const Options& options, ClosureQueue* queue,
                 MissingTasks* missing, Clock* clock)
      : options_(options), queue_(queue), missing_(missing), clock_(clock) {}

  // Called for each worker, by index, before anything else. The stream is
  // borrowed.
  void AddWorker(TaskId task, ReconnectingStream* stream);

  int worker_count() const { return static_cast<int>(records_.size()); }
  // By worker.
  std::vector<WorkerRecord>& records() { return records_; }
  const std::vector<WorkerRecord>& records() const { return records_; }

  // ---- Events of a session.

  void NoteDial(int worker, uint64_t session);
  // Ignores the acceptance of a session that is not being opened. A worker that
  // comes later than the first functions (`has_functions`) has joined, which
  // the log says.
  void NoteAcceptance(WorkerRecord* record,
                      const proto::SessionAcceptance& acceptance,
                      bool has_functions);
  // A session has ended without being told to. Fails the start-up if a worker
  // refuses its session for a reason that no later attempt can remove.
  void NoteEnd(const absl::Status& reason, WorkerRecord* record);
  // A worker that is there has failed closures because it cannot reach others.
  // Gives it nothing for a while. Logs if `is_news`.
  void NoteTrouble(const absl::Status& trouble, bool is_news,
                   WorkerRecord* record);
  // The worker was told that its part of the job is over.
  void NoteLast(absl::Time now, WorkerRecord* record);

  // Ends the sessions of workers that are silent, or do not answer an opening.
  void EndSilent(absl::Time now);
  // Gives all workers new sessions, through no fault of their own, and what
  // they hold back to the queue.
  void RenewAll();
  // What the workers could not reach is there again.
  void EndPauses();
  // As ClosureDispatcher::DrainWorker().
  absl::Status BeginLeaving(int worker, absl::AnyInvocable<void()> on_left);

  // ---- State.

  // When the next pause after `now` ends.
  absl::Time NextEndOfPause(absl::Time now) const;
  // True if no session is open or about to be: all have ended.
  bool AllPresentHaveEnded() const;
  // True if every worker was told that its part of the job is over.
  bool AllHaveEnded() const { return ended_count_ == worker_count(); }

  int64_t lost_count() const { return lost_count_; }
  int64_t recovered_count() const { return recovered_count_; }

  // Adds a TaskStatus for each worker.
  void AddStatus(const ClusterSpec& cluster, StatusReport* report) const;
  // Which worker holds what, and which are lost: "; worker 0 ...; ...".
  std::string Describe() const;

 private:
  ReconnectingStream& stream(const WorkerRecord& record) const {
    return *streams_[record.worker];
  }
  std::string NameOf(const WorkerRecord& record) const {
    return stream(record).channel().peer();
  }
  void NoteRefusal(const absl::Status& why, WorkerRecord* record);
  // An open session has ended badly.
  void NoteLoss(WorkerRecord* record);
  void Renew(WorkerRecord* record);
  // True if a worker besides this one has an open session.
  bool HasOtherOpenSession(const WorkerRecord& record) const;

  const Options options_;
  ClosureQueue* const queue_;
  MissingTasks* const missing_;
  Clock* const clock_;
  // By worker.
  std::vector<TaskId> tasks_;
  std::vector<ReconnectingStream*> streams_;
  std::vector<WorkerRecord> records_;
  int ended_count_ = 0;
  int64_t lost_count_ = 0;
  int64_t recovered_count_ = 0;
};

}  // namespace muster

#endif  // COORDINATOR_WORKER_SESSIONS_H_
