#ifndef DEPLOY_LAUNCH_MANIFEST_OPTIONS_H_
#define DEPLOY_LAUNCH_MANIFEST_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "deploy/launch/engine_job.h"

namespace muster {

// The kind of object that starts the pods.
enum class Workload {
  kJob,       // A Job for each role.
  kJobSet,    // One JobSet.
  kTrainJob,  // Kubeflow's TrainJob, with its TrainingRuntime.
};

// The scheduler that starts all pods of a job or none.
enum class GangScheduler {
  kNone,
  kCoscheduling,  // The plugin of kubernetes-sigs/scheduler-plugins.
  kVolcano,
};

struct ManifestOptions {
  std::string image;       // Has `launch` as its entry point.
  std::string job_text;    // Content of the job file; empty with a program.
  std::string data_claim;  // A PersistentVolumeClaim mounted at /data, or "".
  std::string cpus = "1";  // Of each task; a quantity of Kubernetes.
  std::string memory = "2Gi";
  std::string storage = "10Gi";  // Of the run folder.
  int worker_gpus = 0;  // NVIDIA GPUs of each worker; other tasks get none.

  Workload workload = Workload::kJob;
  GangScheduler gang = GangScheduler::kNone;
  std::string queue;           // Kueue's LocalQueue; "" for none.
  std::string priority_class;  // A PriorityClass; "" for none.
  // A label of nodes. The pods of a role are spread over its values. "" for no
  // such constraint.
  std::string topology_key;
  // The time after which finished jobs are deleted; unset: never.
  std::optional<int64_t> ttl_seconds;
  bool has_pod_monitor = false;

  // How often the pods of a role may fail, and how often a JobSet is restarted.
  int restart_count_max = 20;
  int status_port = 9090;
  std::string service;  // The headless Service; "" for the job's name.
  // How long a task may take to end after SIGTERM.
  int64_t grace_seconds = 50;
};

// The folders of a job in its pods.
struct PodFolders {
  std::string run;       // The run folder: a path or a URL.
  std::string volume;    // The mount path of the run folder's volume, or "".
  bool has_url = false;  // The job names a URL of an object store.
};

// Returns the workload called "job", "jobset" or "trainjob".
//   kInvalidArgument  no such workload
absl::StatusOr<Workload> ParseWorkload(absl::string_view name);

// Returns the scheduler called "", "coscheduling" or "volcano".
//   kInvalidArgument  no such scheduler
absl::StatusOr<GangScheduler> ParseGangScheduler(absl::string_view name);

// Checks the values that are inserted into manifests unchanged.
//   kInvalidArgument  a value is invalid; the message names the flag, the value
//                     and what was expected
absl::Status CheckManifestOptions(const ManifestOptions& options);

// Returns the folders of `job`.
//   kInvalidArgument  the run folder would hide a folder that pods need
absl::StatusOr<PodFolders> FoldersOf(const EngineJob& job,
                                     const ManifestOptions& options);

}  // namespace muster

#endif  // DEPLOY_LAUNCH_MANIFEST_OPTIONS_H_
