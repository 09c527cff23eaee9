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

// One process of a cluster. The incarnation is random per process start:
// another one under the same name is another process, with nothing of the
// first one's memory.
struct TaskIdentity {
  std::string task_type;  // As TF_CONFIG spells it.
  int task_index = 0;
  uint64_t incarnation = 0;

  std::string ToString() const;  // "worker 1"
};

// How an incarnation is printed: 16 hexadecimal digits, "6f1c02a9d2e4b713".
std::string IncarnationString(uint64_t incarnation);

// Decides whether a request is admitted: it must belong to the job that this
// process works for, and be meant for this incarnation of the process.
//
// A refusal goes to any process that can connect. It names this task, and
// neither its job nor its incarnation: a caller that knows them is admitted.
//
// Thread-safe.
class AdmissionCheck {
 public:
  explicit AdmissionCheck(TaskIdentity self);

  const TaskIdentity& self() const { return self_; }

  // From now on only requests of `job_id` come in. Before the first call every
  // job's do.
  //   kFailedPrecondition  this process already works for another job
  absl::Status AdoptJob(absl::string_view job_id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the job; the next one may be adopted.
  void ReleaseJob() ABSL_LOCKS_EXCLUDED(mutex_);
  std::string job_id() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Sets whether the coordinator of the job is connected; true at first.
  // Without it the job may soon be over.
  void SetHasCoordinator(bool has_coordinator) ABSL_LOCKS_EXCLUDED(mutex_);

  //   kPermissionDenied    the request belongs to another job
  //   kUnavailable         it does, and the job here has no coordinator
  //   kFailedPrecondition  it is meant for an earlier process of this name
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
