#include "deploy/launch/kubernetes_manifests.h"

#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace muster {
namespace {

constexpr int kStatusPort = 9090;
constexpr absl::string_view kJobFolder = "/etc/muster/job";
constexpr absl::string_view kRunFolder = "/run/muster";
constexpr absl::string_view kDataFolder = "/data";

using Replacements = std::vector<std::pair<absl::string_view, std::string>>;

constexpr absl::string_view kHead =
    R"yaml(# $NAME on Kubernetes 1.26 or newer: $TASKS.
# Before `kubectl apply -f` of this file:
#
#   kubectl create secret generic $NAME-status \
#     --from-literal=token="$(openssl rand -hex 32)"
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

constexpr absl::string_view kShared = R"yaml(---
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
---
# Names the pods $NAME-ROLE-INDEX.$NAME, also before they are ready: tasks wait for
# each other first.
apiVersion: v1
kind: Service
metadata:
  name: $NAME
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
# Add a rule for port $STATUS_PORT to let Prometheus scrape.
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

// 1 and 2 would happen again. 138 asks for a new pod, and 143 ends one that was
// told to stop.
constexpr absl::string_view kJob = R"yaml(---
apiVersion: batch/v1
kind: Job
metadata:
  name: $NAME-$ROLE
  labels: {app.kubernetes.io/name: muster, muster/job: $NAME, muster/role: $ROLE}
spec:
  completionMode: Indexed
  completions: $COUNT
  parallelism: $COUNT
  backoffLimit: 20
  podFailurePolicy:
    rules:
    - action: FailJob
      onExitCodes: {containerName: muster, operator: In, values: [1, 2]}
    - action: Ignore
      onExitCodes: {containerName: muster, operator: In, values: [138, 143]}
    - action: Ignore
      onPodConditions: [{type: DisruptionTarget, status: "True"}]
  template:
    metadata:
      labels: {app.kubernetes.io/name: muster, muster/job: $NAME, muster/role: $ROLE}
    spec:
      subdomain: $NAME
      restartPolicy: Never
      terminationGracePeriodSeconds: 60
      automountServiceAccountToken: false
      enableServiceLinks: false
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        seccompProfile: {type: RuntimeDefault}
      containers:
      - name: muster
        image: $IMAGE
)yaml";

constexpr absl::string_view kContainer = R"yaml(        ports:
        - {name: tasks, containerPort: $PORT}
        - {name: status, containerPort: $STATUS_PORT}
        livenessProbe:
          httpGet: {path: /livez, port: status}
          periodSeconds: 10
          failureThreshold: 6
        readinessProbe:
          httpGet: {path: /readyz, port: status}
          periodSeconds: 5
        resources:
          requests: {cpu: $CPUS, memory: $MEMORY}
          limits: {memory: $MEMORY$GPUS}
        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          capabilities: {drop: [ALL]}
        volumeMounts:
        - {name: run, mountPath: /run/muster}
        - {name: status, mountPath: /etc/muster/status, readOnly: true}
        - {name: tmp, mountPath: /tmp}
)yaml";

constexpr absl::string_view kVolumes = R"yaml(      volumes:
      - name: run
        persistentVolumeClaim: {claimName: $NAME-run}
      - name: status
        secret: {secretName: $NAME-status, defaultMode: 0440}
      - name: tmp
        emptyDir: {}
)yaml";

std::string Fill(absl::string_view text, const Replacements& replacements) {
  return absl::StrReplaceAll(text, replacements);
}

std::string JobFileName(const EngineJob& job) {
  return std::filesystem::path(job.plan.job_file).filename().string();
}

std::string ConfigMap(const EngineJob& job, absl::string_view text,
                      const Replacements& replacements) {
  std::string manifest =
      absl::StrReplaceAll(Fill(kConfigMap, replacements),
                          {{"$FILE", YamlString(JobFileName(job))}});
  for (absl::string_view line :
       absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    absl::StrAppend(&manifest, line.empty() ? "" : "    ", line, "\n");
  }
  return manifest;
}

// The lines of args and command.
std::string Command(const EngineJob& job) {
  std::string text;
  if (!job.plan.program.empty()) {
    absl::StrAppend(&text, "        command: [",
                    YamlString(job.plan.program.front()), "]\n");
  }
  const std::string job_file = absl::StrCat(kJobFolder, "/", JobFileName(job));
  const std::vector<std::string> arguments =
      EngineTaskArguments(job.plan, job_file);
  if (!arguments.empty()) absl::StrAppend(&text, "        args:\n");
  for (const std::string& argument : arguments) {
    absl::StrAppend(&text, "        - ", YamlString(argument), "\n");
  }
  return text;
}

std::string Environment(const EngineJob& job, const ManifestOptions& options) {
  std::map<std::string, std::string> variables = {
      {"MUSTER_CLUSTER_RESOLVER", "kubernetes"},
      {"MUSTER_CLUSTER_TASKS", ClusterTasksOf(job.plan)},
      {"MUSTER_PORT_BASE", absl::StrCat(job.port_base)},
      {"MUSTER_RUN_DIR", std::string(kRunFolder)},
      {"MUSTER_STATUS_PORT", absl::StrCat(kStatusPort)},
      {"MUSTER_STATUS_HOST", "0.0.0.0"},
      {"MUSTER_STATUS_TOKEN_FILE", "/etc/muster/status/token"},
      {"MUSTER_STATUS_JOB", job.name},
      // Below the pod's, so that the task ends by itself.
      {"MUSTER_GRACE_PERIOD", "50s"},
      // A pod may have to wait for a node.
      {"MUSTER_SERVER_RETURN_TIMEOUT", "10m"}};
  if (job.tls) {
    variables["MUSTER_TLS_DIR"] = "/etc/muster/tls";
  } else {
    variables["MUSTER_INSECURE"] = "true";
  }
  if (!options.data_claim.empty()) {
    variables["MUSTER_DATA_ROOT"] = absl::StrCat(kDataFolder, ",", kRunFolder);
  }
  for (const auto& [name, value] : job.plan.environment) {
    variables[name] = value;
  }
  std::string text = "        env:\n";
  for (const auto& [name, value] : variables) {
    absl::StrAppend(&text, "        - {name: ", name,
                    ", value: ", YamlString(value), "}\n");
  }
  return text;
}

// A volume that only some jobs have, with its mount.
struct Volume {
  std::string mount;
  std::string source;
};

std::vector<Volume> OptionalVolumes(const EngineJob& job, TaskType role,
                                    int count, const ManifestOptions& options) {
  std::vector<Volume> volumes;
  if (job.plan.program.empty()) {
    volumes.push_back({absl::StrCat("{name: job, mountPath: ", kJobFolder,
                                    ", readOnly: true}"),
                       absl::StrCat("name: job\n        configMap: {name: ",
                                    job.name, "-job}")});
  }
  // An evaluator talks to no task.
  if (job.tls && role != TaskType::kEvaluator) {
    std::string items = absl::StrCat(
        "name: tls\n        secret:\n          secretName: ", job.name,
        "-tls\n          defaultMode: 0440\n",
        "          items:\n          - {key: ca.pem, path: ca.pem}");
    for (int index = 0; index < count; ++index) {
      for (absl::string_view kind : {"pem", "key"}) {
        const std::string file =
            absl::StrCat(TaskTypeName(role), "-", index, ".", kind);
        absl::StrAppend(&items, "\n          - {key: ", file, ", path: ", file,
                        "}");
      }
    }
    volumes.push_back(
        {"{name: tls, mountPath: /etc/muster/tls, readOnly: true}", items});
  }
  if (!options.data_claim.empty()) {
    volumes.push_back(
        {absl::StrCat("{name: data, mountPath: ", kDataFolder,
                      ", readOnly: true}"),
         absl::StrCat("name: data\n        persistentVolumeClaim: {claimName: ",
                      YamlString(options.data_claim), ", readOnly: true}")});
  }
  return volumes;
}

std::string IndexedJob(const EngineJob& job, TaskType role, int count,
                       const ManifestOptions& options,
                       Replacements replacements) {
  replacements.emplace_back("$ROLE", std::string(TaskTypeName(role)));
  replacements.emplace_back("$COUNT", absl::StrCat(count));
  const int gpus = role == TaskType::kWorker ? options.worker_gpus : 0;
  replacements.emplace_back(
      "$GPUS", gpus == 0 ? "" : absl::StrCat(", nvidia.com/gpu: ", gpus));
  const std::vector<Volume> volumes =
      OptionalVolumes(job, role, count, options);
  std::string text =
      absl::StrCat(Fill(kJob, replacements), Command(job),
                   Environment(job, options), Fill(kContainer, replacements));
  for (const Volume& volume : volumes) {
    absl::StrAppend(&text, "        - ", volume.mount, "\n");
  }
  absl::StrAppend(&text, Fill(kVolumes, replacements));
  for (const Volume& volume : volumes) {
    absl::StrAppend(&text, "      - ", volume.source, "\n");
  }
  return text;
}

absl::Status CheckManifestOptions(const ManifestOptions& options) {
  if (options.image.empty()) {
    return absl::InvalidArgumentError(
        "--image is missing: the container image that has Muster, as "
        "deploy/image builds it, or your program");
  }
  for (const auto& [flag, value] : {std::pair("--task_cpus", options.cpus),
                                    std::pair("--task_memory", options.memory),
                                    std::pair("--storage", options.storage)}) {
    if (value.empty() ||
        value.find_first_not_of("0123456789.EPTGMKkmi") != std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, "=", value,
                       ": expected a quantity of Kubernetes, as in 500m, 2 or "
                       "2Gi"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string YamlString(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      quoted += absl::StrFormat("\\x%02x", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

absl::StatusOr<std::string> KubernetesManifests(
    const EngineJob& job, const ManifestOptions& options) {
  if (absl::Status status = CheckManifestOptions(options); !status.ok()) {
    return status;
  }
  const int chief_count = job.plan.with_chief ? 1 : 0;
  const int evaluator_count = job.plan.with_evaluator ? 1 : 0;
  const Replacements replacements = {
      {"$NAME", job.name},
      {"$TASKS", ClusterTasksOf(job.plan)},
      {"$CHIEFS", absl::StrCat(chief_count)},
      {"$WORKERS", absl::StrCat(job.plan.worker_count)},
      {"$PS", absl::StrCat(job.plan.ps_count)},
      {"$IMAGE", YamlString(options.image)},
      {"$PORT", absl::StrCat(job.port_base)},
      {"$STATUS_PORT", absl::StrCat(kStatusPort)},
      {"$CPUS", YamlString(options.cpus)},
      {"$MEMORY", YamlString(options.memory)},
      {"$STORAGE", YamlString(options.storage)}};
  std::string text =
      absl::StrCat(Fill(kHead, replacements),
                   Fill(job.tls ? kHeadOfTls : kHeadOfPlaintext, replacements));
  if (job.plan.program.empty()) {
    absl::StrAppend(&text, ConfigMap(job, options.job_text, replacements));
  }
  absl::StrAppend(&text, Fill(kShared, replacements));
  for (const auto& [role, count] :
       {std::pair(TaskType::kChief, chief_count),
        std::pair(TaskType::kPs, job.plan.ps_count),
        std::pair(TaskType::kWorker, job.plan.worker_count),
        std::pair(TaskType::kEvaluator, evaluator_count)}) {
    if (count == 0) continue;
    absl::StrAppend(&text, IndexedJob(job, role, count, options, replacements));
  }
  return text;
}

}  // namespace muster
