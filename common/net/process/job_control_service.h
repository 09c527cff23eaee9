#ifndef COMMON_NET_PROCESS_JOB_CONTROL_SERVICE_H_
#define COMMON_NET_PROCESS_JOB_CONTROL_SERVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/net/cluster/cluster_config.h"
#include "common/net/process/task_options.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/network.h"
#include "common/net/rpc/service.h"
#include "common/net/status/status_report.h"

namespace muster {

// Whether the task of `config` leads its job: the chief, worker 0 where there
// is none, or a process that trains alone.
bool LeadsJob(const ClusterConfig& config);

// Receives the requests of operators (/muster.Job/...) for JobControl, on a
// port of its own. /status.json names its address, which is how musterctl finds
// it. Thread-safe.
//
// With TLS, callers need a certificate of the role "operator" or "chief". In
// plaintext whoever reaches the port may call, as on every other port: on a
// cluster of one machine that is this machine.
class JobControlService {
 public:
  // Returns null unless --control_port is set and this task leads the job.
  //   kUnavailable  the port is in use
  static absl::StatusOr<std::unique_ptr<JobControlService>> Serve(
      const TaskOptions& options, const TaskIdentity& identity,
      Network* network);

  JobControlService(const JobControlService&) = delete;
  JobControlService& operator=(const JobControlService&) = delete;

 private:
  explicit JobControlService(const TaskIdentity& identity);

  Service methods_;
  // Of no job: operators do not know the id of one.
  AdmissionCheck admission_check_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<StatusSource> status_;
};

}  // namespace muster

#endif  // COMMON_NET_PROCESS_JOB_CONTROL_SERVICE_H_
