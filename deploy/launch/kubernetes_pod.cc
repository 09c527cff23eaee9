#include "deploy/launch/kubernetes_pod.h"

#include <filesystem>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace muster {
namespace {

constexpr absl::string_view kJobFolder = "/etc/muster/job";
constexpr absl::string_view kDataFolder = "/data";
// Time that a pod has after its task has ended.
constexpr int kGraceReserveSeconds = 10;

// Exit codes 1 and 2 would recur in a new pod. 138 requests a new pod, and 143
// is that of a pod that was stopped.
constexpr absl::string_view kJobSpec = R"yaml(  completionMode: Indexed
  completions: $COUNT
  parallelism: $COUNT
  backoffLimit: $RESTARTS
  podFailurePolicy:
    rules:
    - action: FailJob
      onExitCodes: {containerName: $CONTAINER, operator: In, values: [1, 2]}
    - action: Ignore
      onExitCodes: {containerName: $CONTAINER, operator: In, values: [138, 143]}
    - action: Ignore
      onPodConditions: [{type: DisruptionTarget, status: "True"}]
  template:
    metadata:
      labels: {app.kubernetes.io/name: muster, muster/job: $NAME, muster/role: $ROLE$GROUP_LABEL}
$GROUP_ANNOTATION    spec:
      subdomain: $SERVICE
      restartPolicy: Never
$SCHEDULING      terminationGracePeriodSeconds: $GRACE
      automountServiceAccountToken: false
      enableServiceLinks: false
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        seccompProfile: {type: RuntimeDefault}
      containers:
      - name: $CONTAINER
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
          limits: {cpu: $CPUS, memory: $MEMORY$GPUS}
        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          capabilities: {drop: [ALL]}
        volumeMounts:
)yaml";

// A volume and its mount.
struct Volume {
  std::string mount;
  std::string source;
};

std::string JobFileName(const EngineJob& job) {
  return std::filesystem::path(job.plan.job_file).filename().string();
}

// Returns the lines `command` and `args` of a container.
std::string ContainerCommand(const EngineJob& job) {
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

std::string Environment(const EngineJob& job, const PodRole& role,
                        const PodFolders& folders,
                        const ManifestOptions& options) {
  std::map<std::string, std::string> variables = {
      {"MUSTER_CLUSTER_RESOLVER", "kubernetes"},
      {"MUSTER_CLUSTER_TASKS", ClusterTasksOf(job.plan)},
      {"MUSTER_PORT_BASE",
       absl::StrCat(job.port_base.value_or(kEnginePortDefault))},
      {"MUSTER_RUN_DIR", folders.run},
      {"MUSTER_STATUS_PORT", absl::StrCat(options.status_port)},
      {"MUSTER_STATUS_HOST", "0.0.0.0"},
      {"MUSTER_STATUS_TOKEN_FILE", "/etc/muster/status/token"},
      {"MUSTER_STATUS_JOB", job.name},
      // Shorter than the pod's grace period, so that the task ends by itself.
      {"MUSTER_GRACE_PERIOD", absl::StrCat(options.grace_seconds, "s")},
      // A replacement pod may have to wait for a node.
      {"MUSTER_SERVER_RETURN_TIMEOUT", "10m"}};
  if (job.tls) {
    variables["MUSTER_TLS_DIR"] = "/etc/muster/tls";
  } else {
    variables["MUSTER_INSECURE"] = "true";
  }
  if (!options.data_claim.empty()) {
    variables["MUSTER_DATA_ROOT"] = absl::StrCat(kDataFolder, ",", folders.run);
  }
  for (const auto& [name, value] : job.plan.environment) {
    variables[name] = value;
  }
  if (const auto trace = variables.find("MUSTER_TRACE");
      trace != variables.end() && !folders.volume.empty()) {
    trace->second =
        (std::filesystem::path(folders.run) / trace->second).string();
  }
  std::string text = "        env:\n";
  for (const auto& [name, value] : variables) {
    absl::StrAppend(&text, "        - {name: ", name,
                    ", value: ", YamlString(value), "}\n");
  }
  // Uses as many threads as the CPU limit allows, even if the limit is edited
  // in the manifest.
  if (!variables.contains("MUSTER_THREADS")) {
    absl::StrAppend(&text,
                    "        - name: MUSTER_THREADS\n"
                    "          valueFrom:\n"
                    "            resourceFieldRef: {containerName: ",
                    role.container, ", resource: limits.cpu}\n");
  }
  if (folders.has_url) {
    absl::StrAppend(&text, "        envFrom:\n",
                    "        - secretRef: {name: ", job.name, "-storage}\n");
  }
  return text;
}

Volume CertificatesVolume(const EngineJob& job, const PodRole& role) {
  std::string items = absl::StrCat(
      "name: tls\n        secret:\n          secretName: ", job.name,
      "-tls\n          defaultMode: 0440\n",
      "          items:\n          - {key: ca.pem, path: ca.pem}");
  for (int index = 0; index < role.count; ++index) {
    for (absl::string_view kind : {"pem", "key"}) {
      const std::string file =
          absl::StrCat(TaskTypeName(role.type), "-", index, ".", kind);
      absl::StrAppend(&items, "\n          - {key: ", file, ", path: ", file,
                      "}");
    }
  }
  return {"{name: tls, mountPath: /etc/muster/tls, readOnly: true}", items};
}

std::vector<Volume> Volumes(const EngineJob& job, const PodRole& role,
                            const PodFolders& folders,
                            const ManifestOptions& options) {
  std::vector<Volume> volumes;
  if (!folders.volume.empty()) {
    volumes.push_back(
        {absl::StrCat("{name: run, mountPath: ", YamlString(folders.volume),
                      "}"),
         absl::StrCat("name: run\n        persistentVolumeClaim: {claimName: ",
                      job.name, "-run}")});
  }
  volumes.push_back(
      {"{name: status, mountPath: /etc/muster/status, readOnly: true}",
       absl::StrCat("name: status\n        secret: {secretName: ", job.name,
                    "-status, defaultMode: 0440}")});
  volumes.push_back(
      {"{name: tmp, mountPath: /tmp}", "name: tmp\n        emptyDir: {}"});
  if (job.plan.program.empty()) {
    volumes.push_back({absl::StrCat("{name: job, mountPath: ", kJobFolder,
                                    ", readOnly: true}"),
                       absl::StrCat("name: job\n        configMap: {name: ",
                                    job.name, "-job}")});
  }
  // An evaluator does not communicate with other tasks.
  if (job.tls && role.type != TaskType::kEvaluator) {
    volumes.push_back(CertificatesVolume(job, role));
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

// Returns the lines of a pod's spec that determine where and when it runs.
std::string Scheduling(const ManifestOptions& options, const PodRole& role) {
  std::string text;
  // Kubeflow applies the priority of its trainer's pods to all pods.
  const bool has_priority =
      !options.priority_class.empty() &&
      (options.workload != Workload::kTrainJob || role.container == "node");
  if (has_priority) {
    absl::StrAppend(&text, "      priorityClassName: ",
                    YamlString(options.priority_class), "\n");
  }
  if (options.gang != GangScheduler::kNone) {
    absl::StrAppend(&text, "      schedulerName: ",
                    options.gang == GangScheduler::kVolcano
                        ? "volcano"
                        : "scheduler-plugins-scheduler",
                    "\n");
  }
  if (!options.topology_key.empty()) {
    absl::StrAppend(
        &text,
        "      topologySpreadConstraints:\n"
        "      - maxSkew: 1\n"
        "        topologyKey: ",
        YamlString(options.topology_key),
        "\n"
        "        whenUnsatisfiable: ScheduleAnyway\n"
        "        labelSelector:\n"
        "          matchLabels: {muster/job: $NAME, muster/role: $ROLE}\n");
  }
  return text;
}

// True if the pods must name their group. For a TrainJob, Kubeflow adds the
// name itself.
bool NamesGroup(const ManifestOptions& options, GangScheduler gang) {
  return options.gang == gang && options.workload != Workload::kTrainJob;
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

std::string KubernetesJobSpec(const EngineJob& job, const PodRole& role,
                              const PodFolders& folders,
                              const ManifestOptions& options,
                              Replacements replacements) {
  const int gpus = role.type == TaskType::kWorker ? options.worker_gpus : 0;
  for (const auto& [name, value] : Replacements{
           {"$ROLE", std::string(TaskTypeName(role.type))},
           {"$COUNT", absl::StrCat(role.count)},
           {"$CONTAINER", role.container},
           {"$GRACE",
            absl::StrCat(options.grace_seconds + kGraceReserveSeconds)},
           {"$GPUS",
            gpus == 0 ? "" : absl::StrCat(", nvidia.com/gpu: ", gpus)}}) {
    replacements.emplace_back(name, value);
  }
  const Replacements blocks = {
      {"$SCHEDULING", Scheduling(options, role)},
      {"$GROUP_LABEL", NamesGroup(options, GangScheduler::kCoscheduling)
                           ? ", scheduling.x-k8s.io/pod-group: $NAME"
                           : ""},
      {"$GROUP_ANNOTATION",
       NamesGroup(options, GangScheduler::kVolcano)
           ? "      annotations: {scheduling.k8s.io/group-name: $NAME}\n"
           : ""}};
  const std::vector<Volume> volumes = Volumes(job, role, folders, options);
  std::string text = absl::StrCat(
      absl::StrReplaceAll(absl::StrReplaceAll(kJobSpec, blocks), replacements),
      ContainerCommand(job), Environment(job, role, folders, options),
      absl::StrReplaceAll(kContainer, replacements));
  for (const Volume& volume : volumes) {
    absl::StrAppend(&text, "        - ", volume.mount, "\n");
  }
  absl::StrAppend(&text, "      volumes:\n");
  for (const Volume& volume : volumes) {
    absl::StrAppend(&text, "      - ", volume.source, "\n");
  }
  return text;
}

}  // namespace muster
