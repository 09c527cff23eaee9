#ifndef DEPLOY_LAUNCH_KUBERNETES_MANIFESTS_H_
#define DEPLOY_LAUNCH_KUBERNETES_MANIFESTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "deploy/launch/engine_job.h"

namespace muster {

struct ManifestOptions {
  std::string image;       // Has `launch` as its entry point.
  std::string job_text;    // Content of the job file; empty with a program.
  std::string data_claim;  // A PersistentVolumeClaim mounted at /data, or "".
  std::string cpus = "1";  // Of each task, as Kubernetes writes quantities.
  std::string memory = "2Gi";
  std::string storage = "10Gi";  // Of the run folder.
  int worker_gpus = 0;  // NVIDIA's, of each worker; other tasks get none.
};

// Returns the manifests of `job` in YAML, for `kubectl apply -f`:
//
//   ConfigMap              the job file
//   PersistentVolumeClaim  the run folder, /run/muster in every pod
//   Service                headless: gives the pods their names, also before
//                          they are ready
//   NetworkPolicy          lets only the job's pods reach each other
//   Job for each role      Indexed: pod NAME-ROLE-INDEX runs that task
//
// Pods run as a user without privileges on a read-only root. Their status pages
// answer the probes. Secrets are only named: the text begins with the commands
// that make them. `job.plan.run_dir` is ignored.
//
//   kInvalidArgument  the image is missing, or a value is no quantity
absl::StatusOr<std::string> KubernetesManifests(const EngineJob& job,
                                                const ManifestOptions& options);

// Returns `text` as a double-quoted scalar of YAML.
std::string YamlString(absl::string_view text);

}  // namespace muster

#endif  // DEPLOY_LAUNCH_KUBERNETES_MANIFESTS_H_
