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
#include "common/net/status/run_timeline.h"
#include "common/net/status/status_report.h"
#include "coordinator/closure_queue.h"
#include "coordinator/worker_record.h"

namespace muster {

namespace proto {
class SessionAcceptance;
}  // namespace proto

// The coordinator's sessions with its workers: open, lost, refused, paused or
// ended. Tells the queue which workers can take closures, and the timeline what
// changes.
//
// Not thread-safe. Does not block.
class WorkerSessions {
 public:
  struct Options {
    // A worker that is silent for longer is lost, even if its connection is
    // open.
    absl::Duration heartbeat_timeout;
    // Timeout for the response to an opening.
    absl::Duration handshake_timeout;
    // How long a worker that cannot reach a parameter server gets no closures.
    BackoffOptions retry_pause;
    // Minimum time between two log lines about such a worker.
    absl::Duration trouble_report_interval;
  };

  // The objects are borrowed.
  WorkerSessions(const Options& options, ClosureQueue* queue,
                 MissingTasks* missing, RunTimeline* timeline, Clock* clock)
      : options_(options),
        queue_(queue),
        missing_(missing),
        timeline_(timeline),
        clock_(clock) {}

  // Adds the next worker. Call it for each worker, by index, before all other
  // methods. The stream is borrowed.
  void AddWorker(TaskId task, ReconnectingStream* stream);

  int worker_count() const { return static_cast<int>(records_.size()); }
  // By worker.
  std::vector<WorkerRecord>& records() { return records_; }
  const std::vector<WorkerRecord>& records() const { return records_; }

  // ---- Events of a session.

  void NoteDial(int worker, uint64_t session);
  // Ignores the acceptance of a session that is not being opened. Logs that a
  // worker has joined if its first session is opened after the first functions
  // were added (`has_functions`).
  void NoteAcceptance(WorkerRecord* record,
                      const proto::SessionAcceptance& acceptance,
                      bool has_functions);
  // Records that a session has ended unexpectedly. Fails the start-up if the
  // worker refuses its session and no later attempt can succeed.
  void NoteEnd(const absl::Status& reason, WorkerRecord* record);
  // Records that closures of a connected worker failed because it cannot reach
  // a server. Pauses the worker. Logs the error if `is_news`.
  void NoteTrouble(const absl::Status& trouble, bool is_news,
                   WorkerRecord* record);
  // Records that the worker was told that its part of the job has ended.
  void NoteLast(absl::Time now, WorkerRecord* record);

  // Ends the sessions of workers that are silent or do not answer an opening.
  void EndSilent(absl::Time now);
  // Replaces the sessions of all workers and returns their closures to the
  // queue. Does not count as a loss.
  void RenewAll();
  // Ends all pauses, because the servers can be reached again.
  void EndPauses();
  // As ClosureDispatcher::DrainWorker().
  absl::Status BeginLeaving(int worker, absl::AnyInvocable<void()> on_left);

  // ---- State.

  // Returns the end of the next pause after `now`.
  absl::Time NextEndOfPause(absl::Time now) const;
  // True if no session is open or being opened.
  bool AllPresentHaveEnded() const;
  // True if every worker was told that its part of the job has ended.
  bool AllHaveEnded() const { return ended_count_ == worker_count(); }

  int64_t lost_count() const { return lost_count_; }
  int64_t recovered_count() const { return recovered_count_; }

  // Adds a TaskStatus for each worker.
  void AddStatus(const ClusterSpec& cluster, StatusReport* report) const;
  // Returns which closures each worker holds, and which workers are lost, as ";
  // worker 0 ...; ...".
  std::string Describe() const;

 private:
  ReconnectingStream& stream(const WorkerRecord& record) const {
    return *streams_[record.worker];
  }
  std::string NameOf(const WorkerRecord& record) const {
    return stream(record).channel().peer();
  }
  void NoteRefusal(const absl::Status& why, WorkerRecord* record);
  void NoteReturn(absl::string_view what, const WorkerRecord& record);
  // Handles the unexpected end of an open session.
  void NoteLoss(WorkerRecord* record);
  void Renew(WorkerRecord* record);
  // True if a worker besides this one has an open session.
  bool HasOtherOpenSession(const WorkerRecord& record) const;

  const Options options_;
  ClosureQueue* const queue_;
  MissingTasks* const missing_;
  RunTimeline* const timeline_;
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
