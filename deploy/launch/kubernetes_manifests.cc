#include "deploy/launch/kubernetes_manifests.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/core/base/status_macros.h"
#include "common/net/cluster/task_id.h"
#include "deploy/launch/kubernetes_pod.h"

namespace muster {
namespace {

constexpr absl::string_view kHead =
    R"yaml(# $NAME on Kubernetes 1.26 or newer: $TASKS.
# Before `kubectl apply -f` of this file:
#
#   kubectl create secret generic $NAME-status \
#     --from-literal=token="$(openssl rand -hex 32)"
)yaml";

constexpr absl::string_view kHeadOfStorage =
    R"yaml(#   kubectl create secret generic $NAME-storage \
#     --from-literal=AWS_ACCESS_KEY_ID=ID --from-literal=AWS_SECRET_ACCESS_KEY=KEY \
#     --from-literal=AWS_REGION=REGION
)yaml";

constexpr absl::string_view kHeadOfTls =
    R"yaml(#   musterctl gen-certs --job_id=$NAME --chiefs=$CHIEFS --workers=$WORKERS --ps=$PS --out=certs
#   kubectl create secret generic $NAME-tls \
#     $(printf -- '--from-file=%s ' certs/*.pem certs/*-*.key)
#
# certs/ca.key can make more certificates: keep it out of the cluster.
)yaml";

constexpr absl::string_view kHeadOfPlaintext =
    R"yaml(#
# The tasks talk in plaintext (--insecure): only the NetworkPolicy below, where the
# cluster's network enforces it, keeps others from giving them work.
)yaml";

constexpr absl::string_view kConfigMap = R"yaml(---
apiVersion: v1
kind: ConfigMap
metadata:
  name: $NAME-job
  labels: {app.kubernetes.io/name: muster, muster/job: $NAME}
data:
  $FILE: |2
)yaml";

constexpr absl::string_view kRunVolume = R"yaml(---
# The run folder, in which all tasks write: checkpoints, logs and summary.json.
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: $NAME-run
  labels: {app.kubernetes.io/name: muster, muster/job: $NAME}
spec:
  accessModes: [ReadWriteMany]
  resources:
    requests: {storage: $STORAGE}
)yaml";

constexpr absl::string_view kNetwork = R"yaml(---
# Names the pods $NAME-ROLE-INDEX.$SERVICE, also before they are ready: tasks wait for
# each other first.
apiVersion: v1
kind: Service
metadata:
  name: $SERVICE
  labels: {app.kubernetes.io/name: muster, muster/job: $NAME}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector: {muster/job: $NAME}
  ports:
  - {name: tasks, port: $PORT}
  - {name: status, port: $STATUS_PORT}
---
# All ports within the job: workers that train in sync open sockets of their own.
$SCRAPING
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: $NAME
  labels: {app.kubernetes.io/name: muster, muster/job: $NAME}
spec:
  podSelector:
    matchLabels: {muster/job: $NAME}
  policyTypes: [Ingress]
  ingress:
  - from:
    - podSelector:
        matchLabels: {muster/job: $NAME}
)yaml";

constexpr absl::string_view kScrapedPort = R"yaml(  - from:
    - namespaceSelector: {}
    ports:
    - {protocol: TCP, port: status}
)yaml";

constexpr absl::string_view kPodMonitor = R"yaml(---
# Has the Prometheus operator scrape every task.
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata:
  name: $NAME
  labels: {app.kubernetes.io/name: muster, muster/job: $NAME}
spec:
  selector:
    matchLabels: {muster/job: $NAME}
  podMetricsEndpoints:
  - port: status
    path: /metrics
    authorization:
      type: Bearer
      credentials: {name: $NAME-status, key: token}
)yaml";

constexpr absl::string_view kCoschedulingGroup = R"yaml(---
# All pods start, or none: the tasks wait for each other.
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata:
  name: $NAME
  labels: {app.kubernetes.io/name: muster, muster/job: $NAME}
spec:
  minMember: $PODS
)yaml";

constexpr absl::string_view kVolcanoGroup = R"yaml(---
# All pods start, or none: the tasks wait for each other.
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata:
  name: $NAME
  labels: {app.kubernetes.io/name: muster, muster/job: $NAME}
spec:
  minMember: $PODS
$PRIORITY)yaml";

constexpr absl::string_view kJob = R"yaml(---
apiVersion: batch/v1
kind: Job
metadata:
  name: $NAME-$ROLE
  labels: {app.kubernetes.io/name: muster, muster/job: $NAME, muster/role: $ROLE$QUEUE}
spec:
$TTL)yaml";

constexpr absl::string_view kJobSet = R"yaml(---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: $NAME
  labels: {app.kubernetes.io/name: muster, muster/job: $NAME$QUEUE}
spec:
)yaml";

// The Service above names the pods, so the JobSet's own names are disabled.
constexpr absl::string_view kJobSetSpec =
    R"yaml(  network: {enableDNSHostnames: false}
  successPolicy: {operator: All, targetReplicatedJobs: [$LAST]}
  failurePolicy:
    maxRestarts: $RESTARTS
    rules:
    - {name: wouldFailAgain, action: FailJobSet, onJobFailureReasons: [PodFailurePolicy]}
$TTL  replicatedJobs:
)yaml";

constexpr absl::string_view kReplicatedJob = R"yaml(  - name: $ROLE
    replicas: 1
    template:
      metadata:
        labels: {app.kubernetes.io/name: muster, muster/job: $NAME, muster/role: $ROLE$STEP}
      spec:
)yaml";

constexpr absl::string_view kTrainingRuntime = R"yaml(---
# What the TrainJob below runs. The number of pods is part of every task's
# environment: a TrainJob must not change it.
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata:
  name: $NAME
  labels: {app.kubernetes.io/name: muster, muster/job: $NAME}
spec:
  mlPolicy: {numNodes: $TRAINERS}
$GANG_POLICY  template:
    spec:
)yaml";

constexpr absl::string_view kTrainJob = R"yaml(---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: $NAME
  labels: {app.kubernetes.io/name: muster, muster/job: $NAME$QUEUE}
spec:
  runtimeRef: {apiGroup: trainer.kubeflow.org, kind: TrainingRuntime, name: $NAME}
)yaml";

std::string Fill(absl::string_view text, const Replacements& replacements) {
  return absl::StrReplaceAll(text, replacements);
}

// Indents each line by `spaces`.
std::string Indented(absl::string_view text, int spaces) {
  std::string indented;
  for (absl::string_view line :
       absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    if (!line.empty()) indented.append(static_cast<size_t>(spaces), ' ');
    absl::StrAppend(&indented, line, "\n");
  }
  return indented;
}

std::string ConfigMap(const EngineJob& job, absl::string_view text,
                      const Replacements& replacements) {
  const std::string file =
      std::filesystem::path(job.plan.job_file).filename().string();
  return absl::StrCat(absl::StrReplaceAll(Fill(kConfigMap, replacements),
                                          {{"$FILE", YamlString(file)}}),
                      Indented(text, 4));
}

// Returns the roles that have pods. Roles that others connect to come first.
std::vector<PodRole> RolesOf(const ClusterPlan& plan, Workload workload) {
  std::vector<PodRole> roles;
  for (const auto& [type, count] :
       {std::pair(TaskType::kChief, plan.with_chief ? 1 : 0),
        std::pair(TaskType::kPs, plan.ps_count),
        std::pair(TaskType::kWorker, plan.worker_count),
        std::pair(TaskType::kEvaluator, plan.with_evaluator ? 1 : 0)}) {
    if (count == 0) continue;
    // Kubeflow finds the container of its trainer by this name.
    const bool is_trainer =
        workload == Workload::kTrainJob &&
        type == (plan.worker_count > 0 ? TaskType::kWorker : TaskType::kChief);
    roles.push_back({type, count, is_trainer ? "node" : "muster"});
  }
  return roles;
}

int PodCount(const std::vector<PodRole>& roles) {
  int count = 0;
  for (const PodRole& role : roles) count += role.count;
  return count;
}

// Returns the roles whose end is the end of the job.
std::string LastRoles(const ClusterPlan& plan) {
  std::vector<std::string> names = {std::string(
      TaskTypeName(plan.with_chief ? TaskType::kChief : TaskType::kWorker))};
  if (plan.with_evaluator) {
    names.emplace_back(TaskTypeName(TaskType::kEvaluator));
  }
  return absl::StrJoin(names, ", ");
}

// Returns the spec of a JobSet, indented by two spaces.
std::string JobSetSpec(const EngineJob& job, const std::vector<PodRole>& roles,
                       const PodFolders& folders,
                       const ManifestOptions& options,
                       const Replacements& replacements) {
  std::string text = Fill(kJobSetSpec, replacements);
  for (const PodRole& role : roles) {
    const std::string step =
        role.container == "node"
            ? ", trainer.kubeflow.org/trainjob-ancestor-step: trainer"
            : "";
    Replacements own = replacements;
    own.emplace_back("$ROLE", std::string(TaskTypeName(role.type)));
    own.emplace_back("$STEP", step);
    absl::StrAppend(
        &text, Fill(kReplicatedJob, own),
        Indented(KubernetesJobSpec(job, role, folders, options, replacements),
                 6));
  }
  return text;
}

// Returns the objects that start the pods.
std::string Workloads(const EngineJob& job, const PodFolders& folders,
                      const ManifestOptions& options,
                      const Replacements& replacements) {
  const std::vector<PodRole> roles = RolesOf(job.plan, options.workload);
  std::string text;
  switch (options.workload) {
    case Workload::kJob:
      for (const PodRole& role : roles) {
        Replacements own = replacements;
        own.emplace_back("$ROLE", std::string(TaskTypeName(role.type)));
        absl::StrAppend(
            &text, Fill(kJob, own),
            KubernetesJobSpec(job, role, folders, options, replacements));
      }
      break;
    case Workload::kJobSet:
      text =
          absl::StrCat(Fill(kJobSet, replacements),
                       JobSetSpec(job, roles, folders, options, replacements));
      break;
    case Workload::kTrainJob:
      text = absl::StrCat(
          Fill(kTrainingRuntime, replacements),
          Indented(JobSetSpec(job, roles, folders, options, replacements), 4),
          Fill(kTrainJob, replacements));
      break;
  }
  return text;
}

std::string PodGroup(const ManifestOptions& options,
                     const Replacements& replacements) {
  if (options.workload == Workload::kTrainJob) return "";
  switch (options.gang) {
    case GangScheduler::kNone:
      return "";
    case GangScheduler::kCoscheduling:
      return Fill(kCoschedulingGroup, replacements);
    case GangScheduler::kVolcano:
      return Fill(kVolcanoGroup, replacements);
  }
  return "";
}

absl::string_view GangPolicy(GangScheduler gang) {
  switch (gang) {
    case GangScheduler::kNone:
      return "";
    case GangScheduler::kCoscheduling:
      return "  podGroupPolicy: {coscheduling: {}}\n";
    case GangScheduler::kVolcano:
      return "  podGroupPolicy: {volcano: {}}\n";
  }
  return "";
}

// Returns the replacements that are the same in all manifests of a job.
Replacements ReplacementsOf(const EngineJob& job,
                            const ManifestOptions& options) {
  const ClusterPlan& plan = job.plan;
  return {{"$NAME", job.name},
          {"$SERVICE", options.service.empty() ? job.name : options.service},
          {"$TASKS", ClusterTasksOf(plan)},
          {"$CHIEFS", absl::StrCat(plan.with_chief ? 1 : 0)},
          {"$WORKERS", absl::StrCat(plan.worker_count)},
          {"$PS", absl::StrCat(plan.ps_count)},
          {"$PODS", absl::StrCat(PodCount(RolesOf(plan, options.workload)))},
          {"$TRAINERS",
           absl::StrCat(plan.worker_count > 0 ? plan.worker_count : 1)},
          {"$LAST", LastRoles(plan)},
          {"$IMAGE", YamlString(options.image)},
          {"$PORT", absl::StrCat(job.port_base.value_or(kEnginePortDefault))},
          {"$STATUS_PORT", absl::StrCat(options.status_port)},
          {"$CPUS", YamlString(options.cpus)},
          {"$MEMORY", YamlString(options.memory)},
          {"$STORAGE", YamlString(options.storage)},
          {"$QUEUE", options.queue.empty()
                         ? ""
                         : absl::StrCat(", kueue.x-k8s.io/queue-name: ",
                                        YamlString(options.queue))},
          {"$PRIORITY",
           options.priority_class.empty()
               ? ""
               : absl::StrCat("  priorityClassName: ",
                              YamlString(options.priority_class), "\n")},
          {"$GANG_POLICY", std::string(GangPolicy(options.gang))},
          {"$RESTARTS", absl::StrCat(options.restart_count_max)},
          {"$TTL", options.ttl_seconds.has_value()
                       ? absl::StrCat("  ttlSecondsAfterFinished: ",
                                      *options.ttl_seconds, "\n")
                       : ""},
          {"$SCRAPING",
           options.has_pod_monitor
               ? "# The status pages ask everyone for the token."
               : absl::StrCat("# Add a rule for port ", options.status_port,
                              " to let Prometheus scrape.")}};
}

}  // namespace

absl::StatusOr<std::string> KubernetesManifests(
    const EngineJob& job, const ManifestOptions& options) {
  RETURN_IF_ERROR(CheckManifestOptions(options));
  ASSIGN_OR_RETURN(const PodFolders folders, FoldersOf(job, options));
  const Replacements replacements = ReplacementsOf(job, options);
  std::string text =
      absl::StrCat(Fill(kHead, replacements),
                   folders.has_url ? Fill(kHeadOfStorage, replacements) : "",
                   Fill(job.tls ? kHeadOfTls : kHeadOfPlaintext, replacements));
  if (job.plan.program.empty()) {
    absl::StrAppend(&text, ConfigMap(job, options.job_text, replacements));
  }
  if (!folders.volume.empty()) {
    absl::StrAppend(&text, Fill(kRunVolume, replacements));
  }
  absl::StrAppend(&text, Fill(kNetwork, replacements));
  if (options.has_pod_monitor) {
    absl::StrAppend(&text, Fill(kScrapedPort, replacements),
                    Fill(kPodMonitor, replacements));
  }
  absl::StrAppend(&text, PodGroup(options, replacements),
                  Workloads(job, folders, options, replacements));
  return text;
}

}  // namespace muster
