#ifndef COMMON_NET_RPC_IDENTITY_H_
#define COMMON_NET_RPC_IDENTITY_H_

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace muster {
namespace proto {
class RequestIdentity;
}  // namespace proto

// One process of a cluster. Each process draws a random incarnation when it
// starts. The same task with another incarnation is another process, which has
// none of the memory of the first.
struct TaskIdentity {
  std::string task_type;  // As TF_CONFIG spells it.
  int task_index = 0;
  uint64_t incarnation = 0;

  std::string ToString() const;  // "worker 1"
};

// Returns the printed form of an incarnation: 16 hexadecimal digits, as in
// "6f1c02a9d2e4b713".
std::string IncarnationString(uint64_t incarnation);

// Decides whether a request is admitted: it must belong to the job that this
// process works for, come from the newest coordinator of the job or from a task
// that works for it, and be meant for this incarnation of the process.
//
// A coordinator that was replaced may still run, for example because it was
// suspended. Its requests have a lower coordinator epoch than those of its
// successor. From the first request of the successor on, they are refused, and
// so are those of tasks that still work for the earlier coordinator.
//
// Any process that can connect can get a refusal. So a refusal names this task,
// but not its job or its incarnation: a caller that has both is admitted. It
// names coordinator epochs only to a caller of the same job.
//
// Thread-safe.
class AdmissionCheck {
 public:
  explicit AdmissionCheck(TaskIdentity self);

  const TaskIdentity& self() const { return self_; }

  // From now on admits only requests of the job of `identity`, and of this job
  // only those with the same coordinator epoch or a higher one. Before the
  // first call, requests of all jobs are admitted.
  //   kFailedPrecondition  this process already works for another job, or the
  //                        job has a newer coordinator (IsOfEarlierCoordinator)
  absl::Status AdoptJob(const proto::RequestIdentity& identity)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // As AdoptJob(), but still admits requests of other jobs.
  //   kFailedPrecondition  the job has a newer coordinator
  absl::Status AdoptCoordinator(const proto::RequestIdentity& identity)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the job. Another one may then be adopted. Earlier coordinators of the
  // job are still refused.
  void ReleaseJob() ABSL_LOCKS_EXCLUDED(mutex_);
  std::string job_id() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Sets whether the coordinator of the job is connected; initially true.
  // Without a coordinator the job may end soon, so that another job's request
  // is worth a retry: it is refused with kUnavailable.
  void SetHasCoordinator(bool has_coordinator) ABSL_LOCKS_EXCLUDED(mutex_);

  // Adopts a higher coordinator epoch of a job that has been adopted.
  //   kPermissionDenied    the request belongs to another job
  //   kUnavailable         the request belongs to another job, and the job of
  //                        this process has no coordinator at present
  //   kFailedPrecondition  the request is meant for an earlier process of this
  //                        task (IsForEarlierProcess), or is of an earlier
  //                        coordinator of the job (IsOfEarlierCoordinator);
  //                        names both epochs
  // The status carries a TaskFailure that names this process.
  absl::Status Check(const proto::RequestIdentity& identity)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  bool IsOfCoordinatedJob(const proto::RequestIdentity& identity) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Refuses a lower coordinator epoch of that job, and adopts a higher one.
  absl::Status CheckCoordinator(const proto::RequestIdentity& identity)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckJob(const proto::RequestIdentity& identity) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status CheckTarget(const proto::RequestIdentity& identity) const;
  absl::Status Refuse(const char* cause, absl::Status status) const;

  const TaskIdentity self_;
  mutable absl::Mutex mutex_;
  std::string job_id_ ABSL_GUARDED_BY(mutex_);
  bool has_coordinator_ ABSL_GUARDED_BY(mutex_) = true;
  // The job that was adopted last, and its highest coordinator epoch. They
  // remain when the job is released. Empty if there was none.
  std::string coordinated_job_id_ ABSL_GUARDED_BY(mutex_);
  uint64_t coordinator_epoch_ ABSL_GUARDED_BY(mutex_) = 0;
};

// True if a request was refused because it is meant for an earlier process of
// the task. It was not read, so it has changed nothing.
bool IsForEarlierProcess(const absl::Status& status);

// True if a request was refused because the job has a newer coordinator than
// the one that the caller is or works for. The caller must not try again.
bool IsOfEarlierCoordinator(const absl::Status& status);

}  // namespace muster

#endif  // COMMON_NET_RPC_IDENTITY_H_
