#ifndef COMMON_NET_PROCESS_JOB_CONTROL_SERVICE_H_
#define COMMON_NET_PROCESS_JOB_CONTROL_SERVICE_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/system/thread_pool.h"
#include "common/net/cluster/cluster_config.h"
#include "common/net/process/task_options.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/network.h"
#include "common/net/rpc/service.h"
#include "common/net/status/status_report.h"

namespace muster {

// True if the task of `config` leads its job: the chief, worker 0 if there is
// no chief, or a process that trains alone.
bool LeadsJob(const ClusterConfig& config);

// Receives the requests of operators (/muster.Job/...) for JobControl and
// JobTrace, on a separate port. musterctl reads the address from /status.json.
// Thread-safe.
//
// With TLS, callers need a certificate of the role "operator" or "chief".
// Without TLS, every process that reaches the port may call, as on every other
// port. If the cluster runs on one machine, only processes of this machine
// reach the port.
class JobControlService {
 public:
  // Returns null unless --control_port is set and this task leads the job.
  //   kUnavailable  the port is in use
  static absl::StatusOr<std::unique_ptr<JobControlService>> Serve(
      const TaskOptions& options, const TaskIdentity& identity,
      Network* network);

  // Ends a trace that is being recorded.
  ~JobControlService() ABSL_LOCKS_EXCLUDED(mutex_);
  JobControlService(const JobControlService&) = delete;
  JobControlService& operator=(const JobControlService&) = delete;

 private:
  explicit JobControlService(const TaskIdentity& identity);

  void Trace(const ReceivedMessage& request, Responder responder);
  absl::StatusOr<Message> Record(absl::Duration duration)
      ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  ThreadPool traces_;  // One thread, which records one trace at a time.
  Service methods_;
  // Adopts no job, because operators do not have the job's id.
  AdmissionCheck admission_check_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<StatusSource> status_;
};

}  // namespace muster

#endif  // COMMON_NET_PROCESS_JOB_CONTROL_SERVICE_H_
