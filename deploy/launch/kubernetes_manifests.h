#ifndef DEPLOY_LAUNCH_KUBERNETES_MANIFESTS_H_
#define DEPLOY_LAUNCH_KUBERNETES_MANIFESTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "deploy/launch/engine_job.h"
#include "deploy/launch/manifest_options.h"

namespace muster {

// Returns the manifests of `job` in YAML, for `kubectl apply -f`:
//
//   ConfigMap              the job file
//   PersistentVolumeClaim  the run folder, mounted in every pod, unless it is a
//                          URL
//   Service                headless: gives the pods their names, even before
//                          they are ready
//   NetworkPolicy          lets only the job's pods reach each other
//   PodMonitor             optional: makes Prometheus scrape the tasks
//   PodGroup               optional: starts all pods or none
//   Job for each role      Indexed: pod NAME-ROLE-INDEX runs that task; or one
//                          JobSet; or a TrainingRuntime and its TrainJob
//
// Pods run as a user without privileges on a read-only root. Their status pages
// answer the probes. The manifests refer to Secrets by name. The text begins
// with the commands that create the Secrets.
//
// The run folder is /run/muster. A relative `job.plan.run_dir` is relative to
// it, an absolute one replaces it, and a URL needs no volume.
//
//   kInvalidArgument  the image is missing, or an option is invalid
absl::StatusOr<std::string> KubernetesManifests(const EngineJob& job,
                                                const ManifestOptions& options);

}  // namespace muster

#endif  // DEPLOY_LAUNCH_KUBERNETES_MANIFESTS_H_
