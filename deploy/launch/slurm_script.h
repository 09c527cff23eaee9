#ifndef DEPLOY_LAUNCH_SLURM_SCRIPT_H_
#define DEPLOY_LAUNCH_SLURM_SCRIPT_H_

#include <string>

#include "deploy/launch/engine_job.h"

namespace muster {

struct SlurmScriptOptions {
  // Paths on the nodes; absolute.
  std::string launch;
  std::string musterctl;
  // How often srun is restarted after the loss of a task.
  int restart_count_max = 10;
  // GPUs of each task. All tasks of a step get the same number.
  int task_gpus = 0;
};

// Returns a batch script for sbatch(1) that runs `job` in one step. There is
// one process for each task, and its rank determines its role.
//
// A step that ends with status 137 (a task was killed) or 138 (a task requests
// a restart) is repeated, unless the job has written its summary. With TLS, the
// script makes certificates for each run in its run folder, which the nodes
// must share. The script ends with the status of the step.
std::string SlurmScript(const EngineJob& job,
                        const SlurmScriptOptions& options);

// Returns `text` as one word of a shell: unchanged, or in single quotes.
std::string ShellWord(absl::string_view text);

}  // namespace muster

#endif  // DEPLOY_LAUNCH_SLURM_SCRIPT_H_
