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

// True if the task of `config` leads its job: the chief, worker 0 where there
// is none, or a process that trains alone.
bool LeadsJob(const ClusterConfig& config);

// Receives the requests of operators (/muster.Job/...) for JobControl and
// JobTrace, on a port of its own. /status.json names its address, which is how
// musterctl finds it. Thread-safe.
//
// With TLS, callers need a certificate of the role "operator" or "chief". In
// plaintext every process that reaches the port may call, as on every other
// port: on a cluster of one machine that is this machine.
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
  ThreadPool traces_;  // One after another.
  Service methods_;
  // Of no job: operators do not know the id of one.
  AdmissionCheck admission_check_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<StatusSource> status_;
};

}  // namespace muster

#endif  // COMMON_NET_PROCESS_JOB_CONTROL_SERVICE_H_
