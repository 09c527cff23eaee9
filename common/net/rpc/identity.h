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
// process works for, and be meant for this incarnation of the process.
//
// Any process that can connect can get a refusal. So a refusal names this task,
// but not its job or its incarnation: a caller that has both is admitted.
//
// Thread-safe.
class AdmissionCheck {
 public:
  explicit AdmissionCheck(TaskIdentity self);

  const TaskIdentity& self() const { return self_; }

  // From now on admits only requests of `job_id`. Before the first call,
  // requests of all jobs are admitted.
  //   kFailedPrecondition  this process already works for another job
  absl::Status AdoptJob(absl::string_view job_id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the job. Another one may then be adopted.
  void ReleaseJob() ABSL_LOCKS_EXCLUDED(mutex_);
  std::string job_id() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Sets whether the coordinator of the job is connected; initially true.
  // Without a coordinator the job may end soon, so that another job's request
  // is worth a retry: it is refused with kUnavailable.
  void SetHasCoordinator(bool has_coordinator) ABSL_LOCKS_EXCLUDED(mutex_);

  //   kPermissionDenied    the request belongs to another job
  //   kUnavailable         the request belongs to another job, and the job of
  //                        this process has no coordinator at present
  //   kFailedPrecondition  the request is meant for an earlier process of this
  //                        task
  // The status carries a TaskFailure that names this process.
  absl::Status Check(const proto::RequestIdentity& identity) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status Refuse(const char* cause, absl::Status status) const;

  const TaskIdentity self_;
  mutable absl::Mutex mutex_;
  std::string job_id_ ABSL_GUARDED_BY(mutex_);
  bool has_coordinator_ ABSL_GUARDED_BY(mutex_) = true;
};

}  // namespace muster

#endif  // COMMON_NET_RPC_IDENTITY_H_
