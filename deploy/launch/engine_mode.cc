#include "deploy/launch/engine_mode.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
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

ABSL_DECLARE_FLAG(bool, insecure);
ABSL_DECLARE_FLAG(int, port_base);

namespace muster {
namespace {

// The job as an engine runs it: with paths that do not depend on where this
// process runs.
absl::StatusOr<EngineJob> MakeEngineJob(ClusterPlan plan, bool tls) {
  EngineJob job;
  job.tls = tls;
  if (!job.tls && !absl::GetFlag(FLAGS_insecure)) {
    return absl::InvalidArgumentError(
        "tasks on several machines need protection: add --tls=auto, or "
        "--insecure if only trusted machines can reach them");
  }
  job.port_base = absl::GetFlag(FLAGS_port_base);
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
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (path.empty()) return "";
  if (!file.is_open() || !(text << file.rdbuf())) {
    return absl::InvalidArgumentError(
        absl::StrCat("--job: cannot read ", path));
  }
  return text.str();
}

absl::StatusOr<std::string> MakeSlurmScript(ClusterPlan plan,
                                            const EngineSettings& settings) {
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

absl::StatusOr<std::string> MakeKubernetesManifests(
    ClusterPlan plan, const EngineSettings& settings) {
  ManifestOptions options = {.image = absl::GetFlag(FLAGS_image),
                             .job_text = "",
                             .data_claim = absl::GetFlag(FLAGS_data_claim),
                             .cpus = absl::GetFlag(FLAGS_task_cpus),
                             .memory = absl::GetFlag(FLAGS_task_memory),
                             .storage = absl::GetFlag(FLAGS_storage)};
  ASSIGN_OR_RETURN(options.job_text, ReadJobFile(plan.job_file));
  ASSIGN_OR_RETURN(options.worker_gpus, TaskGpus());
  ASSIGN_OR_RETURN(const EngineJob job,
                   MakeEngineJob(std::move(plan), settings.tls));
  return KubernetesManifests(job, options);
}

}  // namespace

bool EngineModeWanted() {
  return absl::GetFlag(FLAGS_slurm) || absl::GetFlag(FLAGS_kubernetes);
}

std::vector<std::string> EngineFlags() {
  return {"slurm",    "kubernetes", "task",      "name",
          "insecure", "port_base",  "data_root", "checkpoint_root",
          "image",    "data_claim", "task_cpus", "task_memory",
          "storage",  "task_gpus"};
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
