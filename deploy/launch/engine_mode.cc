#include "deploy/launch/engine_mode.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <utility>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/small_file.h"
#include "common/io/storage/object_url.h"
#include "common/net/process/task_options.h"
#include "deploy/launch/engine_job.h"
#include "deploy/launch/executable_finder.h"
#include "deploy/launch/kubernetes_manifests.h"
#include "deploy/launch/slurm_script.h"

ABSL_FLAG(bool, slurm, false,
          "Prints a batch script that runs the job under Slurm, and starts "
          "nothing.");
ABSL_FLAG(bool, kubernetes, false,
          "Prints manifests that run the job on Kubernetes, and starts "
          "nothing.");
ABSL_FLAG(std::string, name, "",
          "The job's name in Slurm or Kubernetes. By default that of the job "
          "file or program.");
ABSL_FLAG(std::string, image, "", "For --kubernetes: the container image.");
ABSL_FLAG(std::string, data_claim, "",
          "For --kubernetes: a PersistentVolumeClaim with the training data, "
          "which tasks find in /data.");
ABSL_FLAG(std::string, task_cpus, "1",
          "For --kubernetes: the CPUs that each task requests.");
ABSL_FLAG(std::string, task_memory, "2Gi",
          "For --kubernetes: the memory that each task gets.");
ABSL_FLAG(int, task_gpus, 0,
          "For --kubernetes: the GPUs of each worker (nvidia.com/gpu). For "
          "--slurm: those of each task (--gpus-per-task).");
ABSL_FLAG(std::string, storage, "10Gi",
          "For --kubernetes: the size of the volume for checkpoints and "
          "results.");

ABSL_FLAG(std::string, workload, "job",
          "For --kubernetes: what starts the pods. \"job\" prints a Job for "
          "each role, \"jobset\" a JobSet, \"trainjob\" a TrainJob of "
          "Kubeflow and its TrainingRuntime.");
ABSL_FLAG(std::string, queue, "",
          "For --kubernetes: the LocalQueue of Kueue that admits the job.");
ABSL_FLAG(std::string, priority_class, "",
          "For --kubernetes: the PriorityClass of the pods.");
ABSL_FLAG(std::string, gang, "",
          "For --kubernetes: starts all pods at once or none, with "
          "\"coscheduling\" (scheduler-plugins) or \"volcano\".");
ABSL_FLAG(std::string, topology_spread, "",
          "For --kubernetes: the label of nodes over whose values the pods of "
          "a role are spread, as in topology.kubernetes.io/zone.");
ABSL_FLAG(absl::Duration, ttl, absl::InfiniteDuration(),
          "For --kubernetes: how long a finished job is kept, as in 24h. By "
          "default until it is deleted.");
ABSL_FLAG(bool, pod_monitor, false,
          "For --kubernetes: adds a PodMonitor, with which the Prometheus "
          "operator scrapes all tasks.");

ABSL_DECLARE_FLAG(bool, insecure);
ABSL_DECLARE_FLAG(int, port_base);
ABSL_DECLARE_FLAG(int, status_port);
ABSL_DECLARE_FLAG(std::string, kubernetes_service);
ABSL_DECLARE_FLAG(absl::Duration, grace_period);

namespace muster {
namespace {

// Flags of tasks that this program handles itself.
constexpr absl::string_view kHandledFlags[] = {
    "job", "run_dir", "insecure", "port_base", "kubernetes_service"};

// Flags of tasks that differ from task to task, or that the engine decides.
struct RefusedFlag {
  absl::string_view name;
  absl::string_view reason;
};

constexpr absl::string_view kDerived =
    "each task derives its cluster and its place from what the engine says";
constexpr absl::string_view kCertificates =
    "--tls=auto gives each task its certificate";

constexpr RefusedFlag kRefused[] = {
    {"check_config", "give it without --slurm and --kubernetes"},
    {"tf_config", kDerived},
    {"job_name", kDerived},
    {"task_index", kDerived},
    {"chief_hosts", kDerived},
    {"worker_hosts", kDerived},
    {"ps_hosts", kDerived},
    {"cluster_resolver", kDerived},
    {"cluster_tasks", kDerived},
    {"tls_cert", kCertificates},
    {"tls_key", kCertificates},
    {"tls_ca", kCertificates},
    {"tls_dir", kCertificates},
};

constexpr absl::string_view kForKubernetes = "it is for --kubernetes";

constexpr RefusedFlag kRefusedBySlurm[] = {
    {"bind_address", "tasks of one node would have the same address"},
    {"lane_port", "tasks of one node would have the same port"},
    {"cores", "sbatch --cpus-per-task says how many a task has"},
    {"kubernetes_service", kForKubernetes},
    {"image", kForKubernetes},
    {"data_claim", kForKubernetes},
    {"task_cpus", kForKubernetes},
    {"task_memory", kForKubernetes},
    {"storage", kForKubernetes},
    {"workload", kForKubernetes},
    {"queue", kForKubernetes},
    {"priority_class", kForKubernetes},
    {"gang", kForKubernetes},
    {"topology_spread", kForKubernetes},
    {"ttl", kForKubernetes},
    {"pod_monitor", kForKubernetes},
};

constexpr RefusedFlag kRefusedByKubernetes[] = {
    {"status_host", "probes must reach every pod"},
    {"status_token_file", "the Secret NAME-status has the token"},
    {"cores", "--task_cpus says how many a pod has"},
};

// Flags that apply to engines only, not to clusters on this machine.
constexpr absl::string_view kOfEngines[] = {
    "name",        "image",          "data_claim", "task_cpus",
    "task_memory", "task_gpus",      "storage",    "workload",
    "queue",       "priority_class", "gang",       "topology_spread",
    "ttl",         "pod_monitor"};

absl::Status ExpectNotGiven(absl::string_view engine,
                            absl::Span<const RefusedFlag> flags) {
  for (const RefusedFlag& flag : flags) {
    if (!IsGiven(flag.name)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--", flag.name, " does not go with ", engine, ": ", flag.reason));
  }
  return absl::OkStatus();
}

// Returns the environment variables that pass the given flags to every task.
std::map<std::string, std::string> TaskEnvironment() {
  std::map<std::string, std::string> environment;
  for (const FlagTopic& topic : TaskFlags(FlagUsers::kAny)) {
    for (const std::string& name : topic.flags) {
      const bool is_handled =
          std::find(std::begin(kHandledFlags), std::end(kHandledFlags), name) !=
          std::end(kHandledFlags);
      if (is_handled || !IsGiven(name)) continue;
      environment[absl::StrCat("MUSTER_", absl::AsciiStrToUpper(name))] =
          absl::FindCommandLineFlag(name)->CurrentValue();
    }
  }
  return environment;
}

// Returns the job for an engine, with paths that do not depend on the working
// directory of this process.
absl::StatusOr<EngineJob> MakeEngineJob(ClusterPlan plan, bool tls) {
  EngineJob job;
  RETURN_IF_ERROR(ExpectNotGiven("--slurm and --kubernetes", kRefused));
  plan.environment = TaskEnvironment();
  job.tls = tls;
  if (!job.tls && !absl::GetFlag(FLAGS_insecure)) {
    return absl::InvalidArgumentError(
        "tasks on several machines need protection: add --tls=auto, or "
        "--insecure if only trusted machines can reach them");
  }
  if (IsGiven("port_base")) job.port_base = absl::GetFlag(FLAGS_port_base);
  job.name = absl::GetFlag(FLAGS_name);
  if (job.name.empty()) {
    job.name = EngineJobName(plan.program.empty() ? plan.job_file
                                                  : plan.program.front());
  }
  RETURN_IF_ERROR(CheckEngineJobName(job.name));
  RETURN_IF_ERROR(CheckPlan(plan));
  job.plan = std::move(plan);
  return job;
}

absl::StatusOr<int> TaskGpus() {
  const int count = absl::GetFlag(FLAGS_task_gpus);
  if (count >= 0) return count;
  return absl::InvalidArgumentError(
      absl::StrCat("--task_gpus=", count, ": expected 0 or more"));
}

absl::StatusOr<std::string> ReadJobFile(const std::string& path) {
  if (path.empty()) return "";
  absl::StatusOr<std::string> text = ReadSmallFile(path);
  if (text.ok()) return text;
  return absl::InvalidArgumentError(
      absl::StrCat("--job: ", text.status().message()));
}

absl::StatusOr<std::string> MakeSlurmScript(ClusterPlan plan,
                                            const EngineSettings& settings) {
  RETURN_IF_ERROR(ExpectNotGiven("--slurm", kRefusedBySlurm));
  if (IsObjectUrl(plan.run_dir)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--run_dir=", plan.run_dir,
        ": expected a folder that all nodes share, because the batch script "
        "keeps certificates in it and looks there for summary.json"));
  }
  if (IsGiven("status_port") && absl::GetFlag(FLAGS_status_port) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--status_port=", absl::GetFlag(FLAGS_status_port),
        ": tasks of one node would have the same port; --status_port=0 selects "
        "free ones, which the tasks print"));
  }
  for (std::string* path : {&plan.job_file, &plan.run_dir}) {
    if (!path->empty()) *path = std::filesystem::absolute(*path).string();
  }
  if (!plan.program.empty()) {
    plan.program.front() =
        std::filesystem::absolute(plan.program.front()).string();
  }
  SlurmScriptOptions options;
  if (settings.bin_dir.empty()) {
    options.launch = OwnPath();
    if (settings.tls) {
      ASSIGN_OR_RETURN(options.musterctl,
                       FindExecutable("musterctl", OwnPath(), ""));
    }
  } else {
    const auto bin_dir = std::filesystem::absolute(settings.bin_dir);
    options.launch = bin_dir / "launch";
    options.musterctl = bin_dir / "musterctl";
  }
  options.restart_count_max =
      settings.restart_count_max.value_or(options.restart_count_max);
  ASSIGN_OR_RETURN(options.task_gpus, TaskGpus());
  ASSIGN_OR_RETURN(const EngineJob job,
                   MakeEngineJob(std::move(plan), settings.tls));
  return SlurmScript(job, options);
}

absl::StatusOr<ManifestOptions> ManifestOptionsOfFlags() {
  ManifestOptions options = {
      .image = absl::GetFlag(FLAGS_image),
      .job_text = "",
      .data_claim = absl::GetFlag(FLAGS_data_claim),
      .cpus = absl::GetFlag(FLAGS_task_cpus),
      .memory = absl::GetFlag(FLAGS_task_memory),
      .storage = absl::GetFlag(FLAGS_storage),
      .queue = absl::GetFlag(FLAGS_queue),
      .priority_class = absl::GetFlag(FLAGS_priority_class),
      .topology_key = absl::GetFlag(FLAGS_topology_spread),
      .has_pod_monitor = absl::GetFlag(FLAGS_pod_monitor),
      .service = absl::GetFlag(FLAGS_kubernetes_service)};
  ASSIGN_OR_RETURN(options.worker_gpus, TaskGpus());
  ASSIGN_OR_RETURN(options.workload,
                   ParseWorkload(absl::GetFlag(FLAGS_workload)));
  ASSIGN_OR_RETURN(options.gang, ParseGangScheduler(absl::GetFlag(FLAGS_gang)));
  const absl::Duration ttl = absl::GetFlag(FLAGS_ttl);
  if (ttl != absl::InfiniteDuration()) {
    options.ttl_seconds = absl::ToInt64Seconds(ttl);
  }
  if (IsGiven("status_port")) {
    options.status_port = absl::GetFlag(FLAGS_status_port);
  }
  if (IsGiven("grace_period")) {
    options.grace_seconds = absl::ToInt64Seconds(
        absl::Ceil(absl::GetFlag(FLAGS_grace_period), absl::Seconds(1)));
  }
  return options;
}

absl::StatusOr<std::string> MakeKubernetesManifests(
    ClusterPlan plan, const EngineSettings& settings) {
  RETURN_IF_ERROR(ExpectNotGiven("--kubernetes", kRefusedByKubernetes));
  ASSIGN_OR_RETURN(ManifestOptions options, ManifestOptionsOfFlags());
  options.restart_count_max =
      settings.restart_count_max.value_or(options.restart_count_max);
  ASSIGN_OR_RETURN(options.job_text, ReadJobFile(plan.job_file));
  ASSIGN_OR_RETURN(const EngineJob job,
                   MakeEngineJob(std::move(plan), settings.tls));
  return KubernetesManifests(job, options);
}

}  // namespace

bool IsGiven(absl::string_view name) {
  const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
  return flag != nullptr && flag->CurrentValue() != flag->DefaultValue();
}

bool IsEngineMode(absl::Span<const std::string> arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") return false;
    for (absl::string_view flag : {"--slurm", "--kubernetes"}) {
      if (argument == flag || argument == absl::StrCat(flag, "=true")) {
        return true;
      }
    }
  }
  return false;
}

bool EngineModeWanted() {
  return absl::GetFlag(FLAGS_slurm) || absl::GetFlag(FLAGS_kubernetes);
}

std::vector<std::string> EngineFlags() {
  return {"slurm",           "kubernetes",  "task",           "name",
          "insecure",        "port_base",   "image",          "data_claim",
          "task_cpus",       "task_memory", "storage",        "task_gpus",
          "workload",        "queue",       "priority_class", "gang",
          "topology_spread", "ttl",         "pod_monitor"};
}

absl::Status ExpectNoEngineFlags() {
  for (absl::string_view name : kOfEngines) {
    if (!IsGiven(name)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--", name, " is for --slurm and --kubernetes; give one of them"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> EngineText(ClusterPlan plan,
                                       const EngineSettings& settings) {
  if (absl::GetFlag(FLAGS_slurm) && absl::GetFlag(FLAGS_kubernetes)) {
    return absl::InvalidArgumentError(
        "--slurm and --kubernetes exclude each other");
  }
  return absl::GetFlag(FLAGS_slurm)
             ? MakeSlurmScript(std::move(plan), settings)
             : MakeKubernetesManifests(std::move(plan), settings);
}

}  // namespace muster
